"""Any result folder as one page without a network: `page.write_page`."""
