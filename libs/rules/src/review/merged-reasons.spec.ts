import { reasonFor, type Reason } from '#libs/contracts';
import { besides } from './merged-reasons.js';

const reason = (fragment: string, field: string, code: string): Reason => reasonFor({ fragment, field }, code, 'why');
const kept = (problems: readonly Reason[], ...found: readonly Reason[]): readonly string[] =>
  found.filter(besides(problems)).map(({ fragment, field, code }) => `${fragment} ${field} ${code}`);

describe('what a review adds to the problems of rendering', () => {
  it('is nothing about a field that could not be rendered', () => {
    const problem = reason('File/a', 'spec.path', 'unknown-template-key');
    const [same, other] = [reason('File/a', 'spec.path', 'bad-path'), reason('File/a', 'spec.mode', 'bad-mode')];
    expect(kept([problem], same, other, reason('File/b', 'spec.path', 'bad-path'))).toEqual([
      'File/a spec.mode bad-mode',
      'File/b spec.path bad-path',
    ]);
  });

  it('is nothing in a fragment whose binding has no value, except what the node cannot do', () => {
    const problem = reason('FluxSync/a', 'spec.bindings[1]', 'missing-value');
    const [commit, place] = [
      reason('FluxSync/a', 'spec.git.commit', 'bad-revision'),
      reason('FluxSync/a', 'spec.placement', 'capability'),
    ];
    expect(kept([problem], commit, place, reason('FluxSync/a', 'kind', 'capability'))).toEqual([
      'FluxSync/a spec.placement capability',
      'FluxSync/a kind capability',
    ]);
    expect(kept([problem], reason('FluxSync/b', 'spec.git.commit', 'bad-revision'))).toEqual([
      'FluxSync/b spec.git.commit bad-revision',
    ]);
  });
});
