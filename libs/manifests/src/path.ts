import { type TextForm } from './shape/forms.js';

/** The path without empty and `.` segments and without a trailing slash; `/` for the root. */
export const normalPath = (path: string): string => (NORMAL.test(path) ? path : `/${segments(path).join('/')}`);

/** Most paths are already in this form, and need no parsing. */
const NORMAL = /^(\/(?!\.?(\/|$))[^/]+)+$/;

/** The form of a path of a fragment on a node. */
export const NODE_PATH: TextForm = {
  code: 'bad-path',
  problem: (text) =>
    unsafe(text) ??
    (text.startsWith('/') ? undefined : 'must be absolute') ??
    (segments(text).length === 0 ? 'must not be /' : undefined),
  anyway: unsafe,
  schema: { maxLength: 4096, pattern: '^(?!(?:[\\s\\S]*/)?\\.\\.(?:/|$))(?!/(?:\\.?/)*\\.?$)/[^\\u0000]*$' },
};

/** The form of a path to a file. A trailing slash would make it a directory. */
export const FILE_PATH: TextForm = {
  ...NODE_PATH,
  problem: (text) =>
    NODE_PATH.problem(text) ?? (text.endsWith('/') ? 'must not end with /: that names a directory' : undefined),
  schema: {
    maxLength: 4096,
    pattern: '^(?!(?:[\\s\\S]*/)?\\.\\.(?:/|$))(?!/(?:\\.?/)*\\.?$)/(?:[^\\u0000]*[^/\\u0000])$',
  },
};

/** The form of a path in a rule: it may be the root, the parent of all. */
export const RULE_PATH: TextForm = {
  ...NODE_PATH,
  problem: (text) => unsafe(text) ?? (text.startsWith('/') ? undefined : 'must be absolute'),
  schema: { maxLength: 4096, pattern: '^(?!(?:[\\s\\S]*/)?\\.\\.(?:/|$))/[^\\u0000]*$' },
};

/** Linux' PATH_MAX. */
const MAX_PATH = 4096;

const segments = (path: string): readonly string[] =>
  path.split('/').filter((segment) => segment !== '' && segment !== '.');

/** Errors that no rendering can fix. */
function unsafe(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain NUL';
  if (text.split('/').includes('..')) return 'must not contain a segment ..';
  return text.length > MAX_PATH ? `must not be longer than ${MAX_PATH} characters` : undefined;
}
