"""Owns: the S3 server of the tests, which is moto's: `python s3_server.py PORT`.

Threads: one for each request. Never: lets two writes overlap. S3 decides which of two conditional writes comes first;
moto looks for the object, and stores the new one later.
"""

import sys
import threading

from moto.s3.responses import S3Response
from moto.server import main

writing = threading.Lock()
put_object = S3Response.put_object


def put_object_alone(self):
    with writing:
        return put_object(self)


S3Response.put_object = put_object_alone
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
