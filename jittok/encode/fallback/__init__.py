"""What the Python reference encodes: texts that no kernel covers, and the first ones while kernels are not compiled."""
