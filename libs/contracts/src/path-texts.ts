/** The rest of a text that begins with this path, for a sentence that names the path already. */
export const withoutPath = (path: string, text: string): string =>
  text.startsWith(`${path} `) ? text.slice(path.length + 1) : text;
