"""What the inspection of a data set costs, beside a bare pass of the same arrays in numpy."""
