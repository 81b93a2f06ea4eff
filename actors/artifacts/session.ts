/** Messages from an attachment to its session, which is in the same shard. */
import type { KeptArtifact } from '../../protocol/artifacts/commands.ts'
import type { SessionCommands } from '../../protocol/sessions/commands.ts'
import type { Tell } from '../actor.ts'

/**
 * Returns the command that informs the session of an attachment in the same commit, as a list. The
 * list is empty for any other artifact.
 */
export const toSession = <N extends 'attachment.converted' | 'attachment.removed'>(
  { attachment, session_id }: Exclude<KeptArtifact, { readonly state: 'abandoned' }>,
  name: N,
  input: SessionCommands[N]['input'],
): readonly Tell[] =>
  attachment && session_id !== undefined
    ? [{ to: { kind: 'session', id: session_id }, name, input }]
    : []
