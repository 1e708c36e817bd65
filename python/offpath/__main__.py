from offpath.cli import main

main()
