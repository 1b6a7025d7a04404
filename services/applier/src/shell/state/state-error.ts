/** A state folder that cannot be used as it is. The message names the file and the way out. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly file: string,
    message: string,
  ) {
    super(`${file}: ${message}`);
  }
}
