# SPDX-License-Identifier: BSD-3-Clause
"""Completion for bash and zsh as plain tables: a key pressed in a shell starts no Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from offpath.reference.model import Command, Option


def bash(root: Command) -> str:
    rows = []
    for command in root.all():
        words = [each.path[-1] for each in command.commands]
        words += [name for option in command.options for name in option.names]
        rows.append(f"    [{command.name!r}]={_quoted(' '.join(words))}")
    values = []
    for command in root.all():
        for option in command.options:
            kind = _kind(option)
            values += [f"    [{command.name + ' ' + name!r}]={_quoted(kind)}" for name in option.names if kind]
    runs = " | ".join(f'"{command.name}"' for command in root.all() if command.runs_command)
    filled = {"ROWS": "\n".join(rows), "VALUES": "\n".join(values), "RUNS": runs}
    return re.sub(r"@([A-Z]+)@", lambda found: filled[found[1]], BASH)


def _kind(option: Option) -> str:
    """What follows an option: nothing, a word of a list, a file, or anything."""
    if not option.value:
        return ""
    if option.choices:
        return " ".join(option.choices)
    return "@file" if option.takes_file() else "@any"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


BASH = """\
# Completion of offpath's commands and options for bash. Made from their definitions; not to be edited.
declare -gA _offpath_words=(
@ROWS@
)
declare -gA _offpath_values=(
@VALUES@
)

_offpath() {
    local word current=${COMP_WORDS[COMP_CWORD]} path=offpath kind='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; ++i)); do
        word=${COMP_WORDS[i]}
        if [[ -n $kind ]]; then
            kind=''
        elif [[ $word == -- ]]; then
            compopt -o default 2>/dev/null
            return
        elif [[ $word == -* ]]; then
            kind=${_offpath_values["$path $word"]-}
        elif [[ -n ${_offpath_words["$path $word"]-} ]]; then
            path+=" $word"
        else
            case $path in
            @RUNS@)
                compopt -o default 2>/dev/null
                return
                ;;
            esac
        fi
    done
    case $kind in
    @file) compopt -o default 2>/dev/null ;;
    @any) ;;
    ?*) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$current") ;;
    *)
        mapfile -t COMPREPLY < <(compgen -W "${_offpath_words[$path]}" -- "$current")
        [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default 2>/dev/null
        ;;
    esac
}
complete -F _offpath offpath
"""


def zsh(root: Command) -> str:
    functions = "\n".join(_zsh_function(command) for command in root.all())
    return (
        "#compdef offpath\n"
        "# Completion of offpath's commands and options for zsh. Made from their definitions; not to be edited.\n\n"
        f'{functions}\nif [[ "$funcstack[1]" == _offpath ]]; then _offpath "$@"; else compdef _offpath offpath; fi\n'
    )


def _zsh_function(command: Command) -> str:
    name = "_" + "_".join(command.path)
    specs = [spec for option in command.options for spec in _zsh_option(option)]
    lines = [f"{name}() {{"]
    if not command.commands:
        rest = ["'*::: : _normal'" if command.runs_command else "'*: :_files'"]
        return "\n".join(
            [*lines, "    _arguments -s \\", *(f"        {each} \\" for each in specs), f"        {rest[0]}", "}", ""]
        )
    described = [_quoted(f"{each.path[-1]}:{_zsh_text(each.summary)}") for each in command.commands]
    cases = [f"        {each.path[-1]}) {name}_{each.path[-1]} ;;" for each in command.commands]
    lines += [
        "    local state line", "    _arguments -C \\", *(f"        {each} \\" for each in specs),
        "        '1: :->command' '*::: :->rest'", "    case $state in", "    command)", "        local -a commands=(",
        *(f"            {each}" for each in described), "        )", "        _describe command commands", "        ;;",
        "    rest)", "        case $line[1] in", *cases, "        esac", "        ;;", "    esac", "}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _zsh_option(option: Option) -> list[str]:
    value = ""
    if option.value:
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.takes_file() else " "
        value = f":{_zsh_text(option.value)}:{action}"
    text = _zsh_text(re.split(r"(?<=\.)\s", option.help.strip())[0])
    once = "*" if option.repeated else ""
    return [_quoted(f"{once}{name}[{text}]{value}") for name in option.names]


def _zsh_text(text: str) -> str:
    text = " ".join(text.replace("`", "").split())
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


SHELLS: dict[str, Callable[[Command], str]] = {"bash": bash, "zsh": zsh}
