PROTOCOL = "torch-1"
