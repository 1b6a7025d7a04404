import { Text } from '#libs/manifests';
import { CHANGE_ID, PageRequest, ReasonedRequest } from './forms.js';

/** `ops.rollout.list`. */
export class ListRolloutsRequest extends PageRequest {}

/** `ops.rollout.get`: one rollout and a page of its nodes. */
export class GetRolloutRequest extends PageRequest {
  @Text(CHANGE_ID) readonly change!: string;
}

/** `ops.rollout.pause`, `resume` and `abort`. */
export class SteerRequest extends ReasonedRequest {
  @Text(CHANGE_ID) readonly change!: string;
}
