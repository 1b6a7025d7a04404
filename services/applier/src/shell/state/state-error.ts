/** A state folder that cannot be used. The message names the file and what to do. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly file: string,
    message: string,
  ) {
    super(`${file}: ${message}`);
  }
}
