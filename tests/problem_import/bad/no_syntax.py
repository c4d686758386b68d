class Model(
