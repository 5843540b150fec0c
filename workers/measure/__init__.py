PROTOCOL = "host-2"
