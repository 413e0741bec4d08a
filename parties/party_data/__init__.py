"""Party data of a node, and the isolation of faults: an error at one party costs no other party."""
