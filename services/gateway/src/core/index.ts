export { answer, type Answer } from './admission/answer.js';
export { lineOfStanding, noCertificate, standingOf, type CertificateStanding } from './admission/certificate.js';
export { readReview, type AdmissionRequest } from './admission/request.js';
export { reviewOf } from './admission/response.js';
export { Wanted } from './admission/wanted.js';
export { ABSENT, contentsOf, type Contents } from './changes.js';
export { decide, type Batch, type Decided, type Deed, type Timing } from './gateway.js';
export { FINALIZER, RETRY, type Condition, type Digest, type Heard, type Status } from './resource.js';
export { State, type RolloutResource } from './state.js';
