"""scapy with libpcap: sniffing and sending on two connected interfaces, filters, an answer."""

import sys
import threading

from scapy.all import ICMP, IP, TCP, UDP, AsyncSniffer, Ether, Raw, conf, raw, sendp, srp1

conf.use_pcap = True
conf.verb = 0
receive, send = sys.argv[2:4]
there = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
print("sockets", conf.L2socket.__name__, conf.L2listen.__name__)


def packets():
    for number in range(10):
        layer = UDP(sport=1000, dport=53) if number % 2 else TCP(sport=1000, dport=80)
        yield there / IP(src="10.0.0.2", dst="10.0.0.1", id=number) / layer / Raw(bytes([number] * 30))


for expression, count in [(None, 10), ("udp port 53", 5), ("tcp port 80 and ip src 10.0.0.2", 5), ("ip[4:2] = 7", 1)]:
    started = threading.Event()
    sniffer = AsyncSniffer(iface=receive, filter=expression, count=count, started_callback=started.set)
    sniffer.start()
    started.wait()
    sendp(list(packets()), iface=send)
    sniffer.join()
    print("filter", expression)
    for packet in sniffer.results:
        print(" ", packet.summary(), raw(packet).hex())

# One end asks, the other answers.
started = threading.Event()


def answer(packet):
    reply = Ether(dst=packet.src, src=packet.dst) / IP(src=packet[IP].dst, dst=packet[IP].src) / ICMP(type=0, id=5, seq=6)
    sendp(reply, iface=receive)


answering = AsyncSniffer(iface=receive, filter="icmp[0] = 8", count=1, prn=answer, started_callback=started.set)
answering.start()
started.wait()
question = there / IP(src="10.0.0.2", dst="10.0.0.1") / ICMP(id=5, seq=6)
print("answer", srp1(question, iface=send, timeout=30, filter="icmp").summary())
answering.join()
