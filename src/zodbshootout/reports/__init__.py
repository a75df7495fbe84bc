"""What is made of results for people and programs to read.

:mod:`~zodbshootout.reports.report` makes a :class:`~zodbshootout.reports.report.Report` of them,
whatever it is written as; each format is a module that writes one, named in
:mod:`~zodbshootout.reports.registry`.
"""
