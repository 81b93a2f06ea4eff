/**
 * The actor that binds one idempotency key for uploads to an artifact. Its id is derived from the
 * project, the principal and the key, so each principal has separate keys. A key never expires.
 *
 * Invariant: at any time, the key is bound to at most one artifact id. It is rebound to another id
 * only if the caller found the bound artifact abandoned. An abandoned id is never used again
 * (artifact.ts, U3), so one key creates at most one artifact.
 */
import type { ArtifactKeyCommands } from '../../protocol/artifacts/commands.ts'
import type { ArtifactKeyEvent } from '../../protocol/artifacts/events.ts'
import type { Actor } from '../actor.ts'

interface ArtifactKeyState {
  /** The bound artifact id. */
  readonly artifact?: string
}

/** The actor of an idempotency key for uploads. */
export const artifactKeyActor: Actor<
  ArtifactKeyState,
  ArtifactKeyEvent,
  Record<never, never>,
  'artifact_key',
  ArtifactKeyCommands
> = {
  kind: 'artifact_key',
  naturallyIdempotent: true,
  initial: () => ({}),
  decide: {
    'artifact_key.claim': ({ artifact }, { artifact_id, replaces }) =>
      artifact === undefined || (artifact === replaces && artifact !== artifact_id)
        ? {
            events: [{ type: 'artifact_key.claimed', artifact_id }],
            reply: { artifact_id },
          }
        : { events: [], reply: { artifact_id: artifact } },
  },
  evolve: { 'artifact_key.claimed': (_, { artifact_id }) => ({ artifact: artifact_id }) },
  ended: ({ artifact }) => artifact !== undefined,
}
