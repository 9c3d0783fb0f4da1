"""The operations of IsoViz: typed functions from a request to a document, for the command line, HTTP and agents."""
