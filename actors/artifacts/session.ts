/** Messages from an attachment to its session, which is in the same shard. */
import type { ArtifactState } from '../../protocol/artifacts/commands.ts'
import type { SessionCommands } from '../../protocol/sessions/commands.ts'
import type { Tell } from '../actor.ts'

/**
 * Returns a list with the command that informs an attachment's session in the same commit. The list
 * is empty for any other artifact.
 */
export const toSession = <N extends 'attachment.converted' | 'attachment.removed'>(
  { attachment, session_id }: Exclude<ArtifactState, { readonly state: 'abandoned' }>,
  name: N,
  input: SessionCommands[N]['input'],
): readonly Tell[] =>
  attachment && session_id !== undefined
    ? [{ to: { kind: 'session', id: session_id }, name, input }]
    : []
