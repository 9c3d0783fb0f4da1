"""The app as a web server: who may enter, the routes beside the pages, and how it starts and says where it is."""
