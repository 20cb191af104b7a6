"""pcapy: a file, filters, dumping; devices if there are some.

Its loop and dispatch fail with Python 3.10 and newer, whatever the library (they lack PY_SSIZE_T_CLEAN).
"""

import os
import sys
import tempfile

import pcapy


def line(header, data):
    print(header.getts(), header.getcaplen(), header.getlen(), data.hex())


try:
    pcapy.open_offline("/no/such/file")
except pcapy.PcapError as error:
    print("none", error)
file = pcapy.open_offline(sys.argv[1])
print("datalink", file.datalink())
file.setfilter("tcp or udp")
header, data = file.next()
while header is not None:
    line(header, data)
    header, data = file.next()
try:
    file.setfilter("no such thing")
except pcapy.PcapError:
    print("no filter")
with tempfile.TemporaryDirectory() as directory:
    copy = os.path.join(directory, "copy.pcap")
    file = pcapy.open_offline(sys.argv[1])
    dumper = file.dump_open(copy)
    for _ in range(10):
        dumper.dump(*file.next())
    del dumper
    with open(copy, "rb") as written:
        print("dumped", written.read().hex())
program = pcapy.compile(pcapy.DLT_EN10MB, 96, "udp port 53", 1, 0)
print("compiled", program.filter(bytes(60)))

if len(sys.argv) > 2:
    print("devices", [name for name in pcapy.findalldevs() if name in sys.argv])
    receive = pcapy.open_live(sys.argv[2], 96, 1, 50)
    send = pcapy.open_live(sys.argv[3], 96, 1, 50)
    print("live", receive.datalink(), receive.getnonblock())
    receive.setfilter("ether proto 0x88b5")
    for number in range(5):
        send.sendpacket(bytes.fromhex("020000000001 020000000002 88b5") + bytes([number] * 100))
    last = None
    while last != 4:
        header, data = receive.next()
        if header is not None:
            last = data[14]
            print(header.getcaplen(), header.getlen(), data.hex())
    print("stats", receive.stats()[1:])
