/** The refusal for a handle that another workflow has. */
import { type Refusal, refuse } from '../errors.ts'

/**
 * Returns the refusal of a workflow whose handle is in use. Without a handle in the request, the
 * handle is derived from the name, so the message names the handle.
 */
export const takenHandle = (handle: string): Refusal =>
  refuse(
    'already_exists',
    { field: 'handle', handle },
    `Another workflow has the handle ${JSON.stringify(handle)}. ` +
      'Handles are unique in all projects together; give another one in handle.',
  )
