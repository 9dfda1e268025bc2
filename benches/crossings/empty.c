/* A function that does nothing, in a library of its own: what a call across libraries must cost. */
unsigned int empty(void);

unsigned int empty(void) { return 1; }
