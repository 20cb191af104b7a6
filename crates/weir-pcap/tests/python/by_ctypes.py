"""Python's ctypes: a file, a filter, a callback, an error; a device if there is one."""

import ctypes
import sys

pcap = ctypes.CDLL("libpcap.so.0.8")


class Timeval(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("microseconds", ctypes.c_long)]


class Header(ctypes.Structure):
    _fields_ = [("time", Timeval), ("captured", ctypes.c_uint32), ("length", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


Handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Header), ctypes.POINTER(ctypes.c_ubyte))
for name in ["pcap_open_offline", "pcap_open_live"]:
    getattr(pcap, name).restype = ctypes.c_void_p
pcap.pcap_geterr.restype = ctypes.c_char_p
pcap.pcap_datalink_val_to_name.restype = ctypes.c_char_p
pcap.pcap_open_live.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
pcap.pcap_next_ex.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
for name in ["pcap_geterr", "pcap_datalink", "pcap_close"]:
    getattr(pcap, name).argtypes = [ctypes.c_void_p]
pcap.pcap_inject.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
pcap.pcap_loop.argtypes = [ctypes.c_void_p, ctypes.c_int, Handler, ctypes.c_void_p]
pcap.pcap_setfilter.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
pcap.pcap_compile.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32]


def filtered(handle, expression):
    program = Program()
    print("compile", pcap.pcap_compile(handle, ctypes.byref(program), expression, 1, 0), program.length)
    print("setfilter", pcap.pcap_setfilter(handle, ctypes.byref(program)))
    pcap.pcap_freecode(ctypes.byref(program))


error = ctypes.create_string_buffer(256)
print("none", pcap.pcap_open_offline(b"/no/such/file", error), error.value)
file = pcap.pcap_open_offline(sys.argv[1].encode(), error)
print("datalink", pcap.pcap_datalink_val_to_name(pcap.pcap_datalink(file)))
filtered(file, b"tcp or udp")


@Handler
def shown(_, header, data):
    time = header[0].time
    print(time.seconds, time.microseconds, header[0].length, bytes(data[: header[0].captured]).hex())


print("loop", pcap.pcap_loop(file, -1, shown, None))
print("compile", pcap.pcap_compile(file, ctypes.byref(Program()), b"no such thing", 1, 0), pcap.pcap_geterr(file) != b"")
pcap.pcap_close(file)

if len(sys.argv) > 2:
    receive, send = (pcap.pcap_open_live(name.encode(), 96, 1, 50, error) for name in sys.argv[2:4])
    filtered(receive, b"ether proto 0x88b5")
    for number in range(5):
        frame = bytes.fromhex("020000000001 020000000002 88b5") + bytes([number] * 100)
        print("inject", pcap.pcap_inject(send, frame, len(frame)))
    header, data = ctypes.POINTER(Header)(), ctypes.POINTER(ctypes.c_ubyte)()
    while True:
        status = pcap.pcap_next_ex(receive, ctypes.byref(header), ctypes.byref(data))
        if status == 0:
            continue
        print("next_ex", status, header[0].captured, header[0].length, bytes(data[: header[0].captured]).hex())
        if data[14] == 4:
            break
    pcap.pcap_close(receive)
    pcap.pcap_close(send)
