/**
 * The messages of channels that share a private artifact. Readers of such a message may read the
 * artifact while the message names it. The artifact decides, because it knows its owner: a message
 * of another principal shares nothing.
 */
import {
  type ArtifactCommands,
  type ArtifactState,
  MAX_ARTIFACT_POSTS,
} from '../../protocol/artifacts/commands.ts'
import type { ArtifactEvent } from '../../protocol/artifacts/events.ts'
import { artifactReferences } from '../../protocol/artifacts/reference.ts'
import { isId } from '../../protocol/ids.ts'
import type { Decision, Effect } from '../actor.ts'

type Post = ArtifactCommands['artifact.post']

/**
 * Stores that a message shares the artifact. Changes nothing unless the artifact is ready, private
 * and owned by the principal that wrote the metadata of the message.
 */
export function postArtifact(
  state: ArtifactState | null,
  { principal_id, channel_id, message_id }: Post['input'],
): Decision<ArtifactEvent, Post['reply']> {
  const isOwn =
    state?.state === 'ready' &&
    state.artifact.visibility === 'private' &&
    state.artifact.owned_by === principal_id
  const isKnown = isOwn && state.posts?.some((post) => post.message_id === message_id)
  return {
    events:
      isOwn && !isKnown ? [{ type: 'artifact.posted', post: { channel_id, message_id } }] : [],
    reply: undefined,
  }
}

/** Adds a message. The oldest one is dropped when there are too many. */
export const withPost = <T extends Exclude<ArtifactState, { readonly state: 'abandoned' }>>(
  state: T,
  post: NonNullable<T['posts']>[number],
): T => ({ ...state, posts: [...(state.posts ?? []), post].slice(-MAX_ARTIFACT_POSTS) })

/**
 * Returns the effects that inform the artifacts that a message names in its metadata.
 * @param principal_id the principal that wrote the metadata.
 */
export const toPostedArtifacts = (
  metadata: unknown,
  principal_id: string,
  channel_id: string,
  message_id: string,
): Effect[] =>
  artifactReferences(metadata)
    .filter(({ id }) => isId(id, 'artifact'))
    .map(({ id }) => ({
      tell: {
        to: { kind: 'artifact', id },
        name: 'artifact.post',
        input: { principal_id, channel_id, message_id } satisfies Post['input'],
      },
    }))
