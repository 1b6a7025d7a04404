import { patternForm, type TextForm } from '../../shape/forms.js';

/** They choose the API, so no template can stand for them. */
const literal = (form: TextForm): TextForm => ({ ...form, anyway: form.problem });

export const KUBE_API_VERSION = literal(
  patternForm(
    'bad-api-version',
    /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?v[0-9]+((alpha|beta)[0-9]+)?$/,
    'must be one such as "apps/v1"',
  ),
);

export const KUBE_KIND = literal(
  patternForm('bad-kind', /^[A-Z][A-Za-z0-9]{0,62}$/, 'must be one such as "Deployment"'),
);

/** As a segment of a path: some kinds allow more than a DNS name, such as `system:node`. */
export const KUBE_NAME = patternForm(
  'bad-name',
  /^(?!\.{1,2}$)[^/%\s]{1,253}$/,
  'must be the name of an object, such as "web"',
);

export const KUBE_NAMESPACE = patternForm(
  'bad-name',
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  'must be the name of a namespace, such as "prod"',
);
