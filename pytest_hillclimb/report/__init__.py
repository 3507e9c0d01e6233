"""What people read: counts, the details of an item, and the table at the end. Renders to text, touches no files."""
