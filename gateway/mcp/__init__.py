"""The MCP door: tools for programs that act for an account, over operations of the REST door."""
