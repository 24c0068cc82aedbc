"""The numerical section of Ravi, Scaglione and Peisert, end to end, and what it leaves out."""
