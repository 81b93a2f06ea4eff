/** Short-lived credentials for the repositories of an environment. */

import type { Environment, GitCredential } from '../../protocol/environments/schema.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'

/** Refuses every request, because no host of repositories is connected. */
export const gitCredential = (_: Environment): GitCredential | Refusal =>
  refuse('service_unavailable', undefined, 'No repository host is connected.')
