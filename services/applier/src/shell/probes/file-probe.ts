import { partsOf } from '../backends/paths/rooted-path.js';
import { fileAt } from '../backends/paths/standing.js';
import { Refused } from '../ports.js';
import type { ProbeType } from './probe-type.js';

/** No config is larger, and a pattern over much more would hold everything else up. */
const LONGEST = 1_048_576;

/** `file {path, matches}` or `{path, absent: true}`, below the root. `^` and `$` match at lines, as in grep. */
export const fileProbe: ProbeType = {
  field: 'file',
  check: (spec) => {
    partsOf(spec['path']);
    if (spec['absent'] !== true) patternOf(spec);
  },
  tryOnce: async (spec, { root }) => {
    const path = String(spec['path']);
    const { now: standing, content } = await fileAt(
      root,
      path,
      ({ size }) => spec['absent'] !== true && size <= LONGEST,
    );
    if (spec['absent'] === true) return standing.state === 'absent' ? undefined : `${path} is there`;
    if (standing.state !== 'file')
      return `${path} is ${standing.state === 'absent' ? 'missing' : `a ${standing.state}`}`;
    if (content === undefined) return `${path} is longer than ${LONGEST} bytes`;
    return patternOf(spec).test(content.toString('utf8'))
      ? undefined
      : `${path} does not match ${String(spec['matches'])}`;
  },
};

function patternOf(spec: Readonly<Record<string, unknown>>): RegExp {
  const { matches } = spec;
  if (typeof matches !== 'string') throw new Refused('content', 'file has neither matches nor absent');
  try {
    return new RegExp(matches, 'm');
  } catch (error) {
    throw new Refused('content', `file.matches: ${(error as Error).message}`);
  }
}
