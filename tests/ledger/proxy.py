# SPDX-License-Identifier: Apache-2.0
"""Stands between a client and the socket of a PostgreSQL server, and cuts the connection where a test wants it."""
import os
import socket
import tempfile
import threading

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """cut: None, "before" (what the client sent does not arrive) or "after" (it does, but the answer does not).
    It applies to the next message with the words in at, skip messages later; then the connection ends, and the
    proxy is as before, unless is_closed: new connections end at once."""

    def __init__(self, server):
        self.server = server
        self.folder = tempfile.mkdtemp(prefix="fds-proxy-")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, SOCKET))
        self.listener.listen()
        self.cut, self.at, self.skip, self.close_then, self.is_closed = None, b"", 0, False, False
        self.has_cut = threading.Event()
        self.links = []
        threading.Thread(target=self.accept, daemon=True).start()

    def plan(self, cut, at=b"COMMIT\0", skip=0, close_then=False):
        self.has_cut.clear()
        self.cut, self.at, self.skip, self.close_then = cut, at, skip, close_then

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_closed:
                client.close()
                continue
            Link(self, client)

    def drop(self):
        """Ends all connections."""
        for link in self.links:
            link.end()

    def close(self):
        self.listener.close()
        self.drop()
        os.remove(os.path.join(self.folder, SOCKET))
        os.rmdir(self.folder)


class Link:
    def __init__(self, proxy, client):
        self.proxy, self.client, self.is_mute, self.counted = proxy, client, False, None
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(os.path.join(proxy.server, SOCKET))
        proxy.links.append(self)
        for target in (self.from_client, self.from_server):
            threading.Thread(target=target, daemon=True).start()

    def end(self):
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            side.close()

    def cut_now(self):
        self.proxy.cut = None
        self.proxy.is_closed = self.proxy.close_then
        self.end()
        self.proxy.has_cut.set()

    def is_the_place(self, data):
        proxy = self.proxy
        if not proxy.cut:
            return False
        if self.counted is None and proxy.at in data:
            self.counted = 0
        elif self.counted is not None:
            self.counted += 1
        return self.counted is not None and self.counted >= proxy.skip

    def from_client(self):
        try:
            while data := self.client.recv(1 << 20):
                if not self.is_the_place(data):
                    self.server.sendall(data)
                elif self.proxy.cut == "before":
                    self.cut_now()
                    return
                else:
                    self.is_mute = True
                    self.server.sendall(data)
        except OSError:
            pass
        self.end()

    def from_server(self):
        try:
            while data := self.server.recv(1 << 20):
                if not self.is_mute:
                    self.client.sendall(data)
                elif data.endswith(b"Z\0\0\0\5", 0, len(data) - 1):  # ready for the next: all is done
                    self.cut_now()
                    return
        except OSError:
            pass
        self.end()
