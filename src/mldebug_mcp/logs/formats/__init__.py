"""One module per format of a log file: its `NAME`, how it is known (`matches`) and how it is read (`read`).

`logs.readers` lists them in the order in which they are asked. A format of lines that can be read on as they are
written offers `follow` too. `mlflow_folder` alone reads a folder.
"""
