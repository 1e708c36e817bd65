# SPDX-License-Identifier: BSD-3-Clause
"""hostile_udp.py DEVICE ADDRESS PORT SECONDS: what a stranger can do to a multicast group of others: hears them, and
says it again, changed, shortened, and at length; and noise. Prints how many datagrams it heard and sent."""

import random
import socket
import sys
import time

device, address, port, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
index = socket.if_nametoindex(device).to_bytes(4, "little")
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
end.bind(("", port))
member = socket.inet_aton(address) + bytes(4) + index
end.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
end.settimeout(0.001)
draw = random.Random(1)
recorded, heard, sent = [], 0, 0
until = time.monotonic() + seconds
while time.monotonic() < until:
    try:
        recorded.append(end.recv(65535))
        heard += 1
    except TimeoutError:
        pass
    del recorded[:-200]
    said = [draw.randbytes(draw.randrange(9000)) for _ in range(2)] + [b""]
    if recorded:
        again = draw.choice(recorded)
        changed = bytearray(draw.choice(recorded))
        for _ in range(draw.randrange(1, 4)):
            if changed:
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        other = draw.choice(recorded)
        forged = again[:24] + other[24:]  # another one's chunk under this one's name
        said += [again, bytes(changed), again[: draw.randrange(len(again) + 1)], forged, *recorded[-4:]]
    for datagram in said:
        try:
            end.sendto(datagram[:8972], (address, port))
            sent += 1
        except OSError:  # no room
            pass
print(heard, sent)
