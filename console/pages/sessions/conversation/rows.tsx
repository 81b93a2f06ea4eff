/**
 * The rows of a conversation. The content of a message is re-rendered only when the message or its
 * results have changed.
 */

import { isShown, type Results } from '../../../../client/chat/entries.ts'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { TranscriptMessage, TranscriptTurn } from '../../../../protocol/sessions/schema.ts'
import { useQuery } from '../../../api/query.ts'
import { Pure } from '../../../design/pure.ts'
import { Badge } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { Duration, Time } from '../../../design/time.tsx'
import { Tree } from '../../../design/tree.tsx'
import { Who } from '../../../people/who.tsx'
import { formatCost } from '../../../text/format.ts'
import { BlockView } from './blocks.tsx'
import type { SessionAddress } from './files.tsx'
import { conversationText as text } from './text.ts'
import type { TurnFacts } from './turn-facts.ts'

const speakers: Readonly<Record<Exclude<TranscriptMessage['role'], 'assistant' | 'user'>, string>> =
  {
    system: text.system,
    tool: text.tool,
    compaction: text.compaction,
  }

/** Links to the origin of a turn: a run, or the session's channel. */
function Origin({
  turn,
  project,
  channel,
}: {
  readonly turn: TranscriptTurn | undefined
  readonly project: string
  readonly channel: string | undefined
}) {
  const base = `/p/${encodeURIComponent(project)}`
  if (turn?.run_id !== undefined)
    return <a href={`${base}/runs/${encodeURIComponent(turn.run_id)}`}>{text.fromRun}</a>
  if (turn?.channel_exchange_id !== undefined && channel !== undefined)
    return <a href={`${base}/channels/${encodeURIComponent(channel)}`}>{text.fromChannel}</a>
  return null
}

/** The principal of turns that the service itself requested. */
const SERVICE = 'system'

/** Shows who wrote a message of the role `user`. */
function Sender({
  message: { metadata, turn_index },
  address: { project, session_id },
  asker,
}: {
  readonly message: TranscriptMessage
  readonly address: SessionAddress
  readonly asker: string | undefined
}) {
  const nudge = turn_index === 0 ? undefined : metadata?.['session_nudge_id']
  const sent = useQuery(
    'session.get_nudge',
    typeof nudge === 'string' ? { project, session_id, nudge_id: nudge } : undefined,
  ).state.value.data
  const id = nudge === undefined ? asker : sent?.sender_principal_id
  return <>{id === undefined || id === SERVICE ? text.user : <Who project={project} id={id} />}</>
}

/** The content of a message. `found`: for each block, the result of its tool call, if any. */
class MessageBody extends Pure<{
  readonly message: TranscriptMessage
  readonly found: readonly ReturnType<Results['get']>[]
  readonly address: SessionAddress
}> {
  override render({ message, found, address }: typeof this.props) {
    const { role, content, status, covers_through_sequence } = message
    const blocks = content.map((block, index) =>
      isShown(block) ? (
        <BlockView
          key={index}
          block={block}
          result={found[index]}
          live={status === 'streaming'}
          address={address}
        />
      ) : null,
    )
    return role === 'compaction' ? (
      <details class="folded">
        <summary>
          {covers_through_sequence === undefined
            ? text.compaction
            : text.summaryOf(covers_through_sequence)}
        </summary>
        <div class="folded-body stack close">{blocks}</div>
      </details>
    ) : (
      blocks
    )
  }
}

/**
 * Shows a message. `asker`: the principal that requested its turn, once it is known. `channel`: the
 * id of the channel to which the session belongs.
 */
export function MessageRow({
  message,
  turn,
  asker,
  results,
  agent,
  address,
  channel,
}: {
  readonly message: TranscriptMessage
  readonly turn: TranscriptTurn | undefined
  readonly asker: string | undefined
  readonly results: Results
  readonly agent: string
  readonly address: SessionAddress
  readonly channel: string | undefined
}) {
  const { role, content, created_at, status, metadata } = message
  const found = content.map((block) =>
    block.type === 'tool_use' ? results.get(block.id) : undefined,
  )
  const live = status === 'streaming'
  return (
    <li class={`talk-message ${role}`} aria-busy={live} data-id={message.id}>
      <div class="talk-head">
        <strong class="user-text">
          {role === 'assistant' ? (
            agent
          ) : role === 'user' ? (
            <Sender message={message} address={address} asker={asker} />
          ) : (
            speakers[role]
          )}
        </strong>
        <span class="soft small">
          <Time at={created_at} />
        </span>
        {live && turn?.status === 'running' && <Badge tone="info">{text.writing}</Badge>}
        <span class="soft small">
          {role === 'user' && <Origin turn={turn} project={address.project} channel={channel} />}
          {role === 'user' && metadata?.['session_nudge_id'] !== undefined && text.duringTurn}
        </span>
      </div>
      <div class="talk-body">
        <MessageBody message={message} found={found} address={address} />
      </div>
    </li>
  )
}

const reasons: Readonly<Record<string, string>> = {
  timeout: text.timeout,
  progress_stalled: text.progress_stalled,
  session_full: text.session_full,
  storage_error: text.storage_error,
  session_gone: text.session_gone,
}
/** Returns why a turn failed, as text. */
function reasonOf({ error_message, error_type }: TranscriptTurn): string {
  const known = error_type === undefined ? undefined : getOwn(reasons, error_type)
  const said = error_message ?? known ?? error_type ?? text.noReason
  return error_type === undefined || said === error_type
    ? said
    : designText.detailed(said, error_type)
}

/** Shows the end of a turn: its outcome, duration, usage and cost. */
export function EndRow({
  turn,
  milli,
}: {
  readonly turn: TranscriptTurn
  readonly milli: TurnFacts['milli']
}) {
  const { id, status, usage = {}, created_at, completed_at, attempt, output } = turn
  const { input_tokens = 0, output_tokens = 0, cache_read_input_tokens: cached = 0, calls } = usage
  return (
    <li class={`turn-end ${status}`} data-id={id}>
      <span class="user-text">
        {status === 'failed'
          ? text.turnFailed(reasonOf(turn))
          : status === 'cancelled'
            ? text.turnCancelled
            : text.turnDone}
      </span>
      <span class="small">
        <Duration from={created_at} to={completed_at ?? created_at} />
        {` · ${text.tokens(input_tokens, output_tokens)}`}
        {cached > 0 && ` · ${text.cached(cached)}`}
        {calls !== undefined && calls > 1 && ` · ${text.calls(calls)}`}
        {milli !== undefined && ` · ${formatCost(milli)}`}
        {attempt > 1 && ` · ${text.attempt(attempt)}`}
      </span>
      {output && (
        <details class="folded">
          <summary>{text.output}</summary>
          <Tree value={output} open={2} />
        </details>
      )}
    </li>
  )
}
