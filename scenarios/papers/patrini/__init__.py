"""Patrini, Nielsen and Nock 2015."""
