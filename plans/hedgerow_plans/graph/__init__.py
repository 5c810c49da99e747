"""What is computed: the intermediate representation, the operator table, validation and text rendering."""
