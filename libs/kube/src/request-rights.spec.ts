import { SILENT, type Logger } from '#libs/process';
import { KubeError, refusalOf } from './errors.js';
import { MissingRights, rightOf, rightsWords, rightWords } from './request-rights.js';

const REFUSED = 'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope';

describe('the right that a request needs', () => {
  it.each([
    ['GET', '/api/v1/nodes/n1', 'get nodes'],
    ['GET', '/api/v1/nodes?limit=500', 'list nodes'],
    ['GET', '/api/v1/nodes?fieldSelector=metadata.name%3Dn1&watch=1', 'watch nodes'],
    ['PATCH', '/api/v1/nodes/n1?fieldManager=sluice', 'patch nodes'],
    ['POST', '/api/v1/namespaces/a/pods/p/eviction', 'create pods/eviction in the namespace a'],
    ['DELETE', '/api/v1/namespaces/a/pods/p', 'delete pods in the namespace a'],
    ['GET', '/api/v1/namespaces/a', 'get namespaces'],
    ['GET', '/apis/policy/v1/namespaces/a/poddisruptionbudgets', 'list poddisruptionbudgets.policy in the namespace a'],
    ['GET', '/apis/sluice.dev/v1alpha1/files?watch=1', 'watch files.sluice.dev'],
    ['PATCH', '/apis/sluice.dev/v1alpha1/files/motd/status?force=true', 'patch files.sluice.dev/status'],
    ['DELETE', '/apis/sluice.dev/v1alpha1/files', 'deletecollection files.sluice.dev'],
  ])('for %s %s is to %s', (method, path, expected) => {
    expect(rightWords(rightOf({ method, path })!)).toBe(expected);
  });

  it('is listed briefly together with others', () => {
    const rights = [
      ['list', 'files'],
      ['patch', 'nodes'],
      ['watch', 'files'],
      ['list', 'pools'],
      ['watch', 'pools'],
    ].map(([verb = '', resource = '']) => ({ verb, resource, group: '', namespace: '' }));
    expect(rightsWords(rights)).toBe('list, watch files, pools; patch nodes');
  });

  it('is undefined for paths that are not resources', () => {
    expect(['/version', '/readyz?verbose', '/api/v1', '/apis'].map((path) => rightOf({ method: 'GET', path }))).toEqual(
      [undefined, undefined, undefined, undefined],
    );
  });
});

describe('a missing right', () => {
  it('is logged once when it is missing and once when it was granted, and may be missing again later', () => {
    const logged: string[] = [];
    const logger: Logger = {
      ...SILENT,
      error: (_fields, message) => logged.push(message),
      info: (_fields, message) => logged.push(message),
    };
    const rights = new MissingRights(logger);
    const [list, watch] = [
      { method: 'GET', path: '/api/v1/nodes?limit=500' },
      { method: 'GET', path: '/api/v1/nodes?watch=1' },
    ];
    const error = new KubeError(403, 'Forbidden', REFUSED);
    for (const request of [list, list, watch, list]) rights.refused(request, error);
    for (const request of [list, list]) rights.granted(request);
    rights.refused(list, error);
    expect(logged).toEqual([
      `the permission to list nodes is missing; waiting for it: ${REFUSED}`,
      `the permission to watch nodes is missing; waiting for it: ${REFUSED}`,
      'the permission to list nodes was granted',
      `the permission to list nodes is missing; waiting for it: ${REFUSED}`,
    ]);
  });

  it('is distinguished from other refusals', () => {
    const of = (message: string): boolean =>
      refusalOf(403, JSON.stringify({ reason: 'Forbidden', message }), null).lacksRight;
    expect([
      of(REFUSED),
      of('pods "p" is forbidden: exceeded quota: q'),
      of('admission webhook "w" denied the request'),
    ]).toEqual([true, false, false]);
  });
});
