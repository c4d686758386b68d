int todo;
