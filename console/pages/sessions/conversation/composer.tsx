/**
 * The field for messages. Its draft survives reloads, and files can be attached. A turn in progress
 * can be given more messages, or be cancelled.
 */

import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { TranscriptTurn } from '../../../../protocol/sessions/schema.ts'
import { ApiError, call, randomKey } from '../../../api/client.ts'
import { useList } from '../../../api/query.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { Icon } from '../../../design/icons.tsx'
import { showDone, showError } from '../../../design/notify.ts'
import { Confirm } from '../../../design/overlay.tsx'
import { Duration } from '../../../design/time.tsx'
import { usePageDrop } from '../../../files/drop.ts'
import { FileInput } from '../../../files/file-input.tsx'
import { useDraft } from '../../../shell/drafts.ts'
import { formatBytes } from '../../../text/format.ts'
import type { FollowedSession } from './followed.ts'
import { conversationText as text } from './text.ts'
import { type Uploads, useUploads } from './uploads.ts'

interface ComposerProps {
  readonly project: string
  readonly session_id: string
  readonly agent: string
  readonly followed: FollowedSession
  readonly field: RefObject<HTMLTextAreaElement | null>
  readonly announce: (message: string) => void
  /** Called after a message was sent. */
  readonly onSent: () => void
}

const states: Readonly<Record<string, string>> = {
  queued: text.queuedTurn,
  running: text.runningTurn,
  waiting: text.waitingTurn,
}

/** Shows the field, the turn in progress, messages that the agent has not read yet, and files. */
export function Composer(props: ComposerProps) {
  const { project, session_id, agent, followed, field, announce, onSent } = props
  const [draft, setDraft] = useDraft(`session.${project}.${session_id}`)
  const uploads = useUploads(project, session_id, announce)
  const [fault, setFault] = useState('')
  const [sending, setSending] = useState(false)
  const [asking, setAsking] = useState(false)
  const asked = useRef(false)
  useEffect(() => {
    // The focus cannot leave an open dialog, so the field is focused after the dialog has closed.
    if (asked.current && !asking) field.current?.focus()
    asked.current = asking
  }, [asking])
  const active = followed.transcript.active()
  const files = uploads.blocks
  const isNudge = active !== undefined && uploads.files.length === 0
  const of = { project, session_id }

  const send = async (): Promise<void> => {
    const content = draft.trim()
    if (sending) return
    setFault(uploads.obstacle ?? '')
    if (uploads.obstacle !== undefined || (content === '' && files.length === 0)) return
    setSending(true)
    const idempotency_key = randomKey()
    try {
      if (isNudge) await call('session.nudge', { ...of, content, idempotency_key })
      else {
        const said = content === '' ? [] : [{ type: 'text', text: content } as const]
        const { user_message, turn } = await call('session.start_turn', {
          ...of,
          content: [...files, ...said],
          idempotency_key,
        })
        uploads.sent(files)
        if (user_message) followed.add('message.upsert', user_message)
        followed.add('turn.upsert', turn)
      }
      // Text that was typed while the message was being sent is kept.
      if (field.current?.value.trim() === content) setDraft('')
      onSent()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault(error.message)
    } finally {
      setSending(false)
    }
  }
  const press = (event: KeyboardEvent): void => {
    if (event.isComposing) return
    if (event.key === 'Escape' && active) {
      event.preventDefault()
      setAsking(true)
    }
    if (event.key !== 'Enter' || event.shiftKey) return
    event.preventDefault()
    void send().catch(showError)
  }
  const paste = (event: ClipboardEvent): void => {
    const { files: pasted, types = [] } = event.clipboardData ?? {}
    // Some programs copy text together with an image. Then only the text is pasted.
    if (!pasted || pasted.length === 0 || types.includes('text/plain')) return
    event.preventDefault()
    uploads.add([...pasted])
  }
  return (
    <form
      class="talk-composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send().catch(showError)
      }}
    >
      {active && <Active turn={active} onStop={() => setAsking(true)} />}
      <Undelivered project={project} session_id={session_id} followed={followed} />
      <Files uploads={uploads} />
      <Drop uploads={uploads} />
      <div class="talk-line">
        <textarea
          ref={field}
          class="input"
          dir="auto"
          rows={2}
          aria-label={text.messageTo(agent)}
          aria-describedby="composer-hint"
          placeholder={text.messageTo(agent)}
          value={draft}
          onInput={({ currentTarget }) => setDraft(currentTarget.value)}
          onKeyDown={press}
          onPaste={paste}
        />
      </div>
      <div class="row apart">
        <p class="soft small grow" id="composer-hint">
          {active ? text.hintActive : text.hint}
        </p>
        <div class="row">
          <FileButton onFiles={uploads.add} />
          <Button kind="primary" icon="send" submit busy={sending}>
            {isNudge ? text.nudge : text.send}
          </Button>
        </div>
      </div>
      {fault !== '' && (
        <p class="fault user-text" role="alert">
          {fault}
        </p>
      )}
      {asking && active && (
        <Confirm
          title={text.stopQuestion}
          action={text.stop}
          danger
          onConfirm={async () => {
            await call('session.cancel_turn', { ...of, turn_id: active.id })
            showDone(text.stopped)
          }}
          onClose={() => setAsking(false)}
        >
          <p>{text.stopHint}</p>
        </Confirm>
      )}
    </form>
  )
}

const Active = ({
  turn,
  onStop,
}: {
  readonly turn: TranscriptTurn
  readonly onStop: () => void
}) => (
  <div class="row apart active-turn">
    <span class="row">
      <i class={`pulse ${turn.status}`} />
      <span role="status">{states[turn.status] ?? turn.status}</span>
      <span class="soft small">
        <Duration from={turn.created_at} />
      </span>
    </span>
    <Button icon="stop" onClick={onStop}>
      {text.stop}
    </Button>
  </div>
)

/** Messages that were added to the turn and that the agent has not read yet. */
function Undelivered({
  project,
  session_id,
  followed,
}: {
  readonly project: string
  readonly session_id: string
  readonly followed: FollowedSession
}) {
  const { state, reload } = useList(
    'session.nudges',
    { project, session_id, status: ['pending'], limit: 50 },
    { kinds: ['session'], id: session_id },
  )
  const read = new Set(
    [...followed.transcript.rows.values()].map(({ metadata }) => metadata?.['session_nudge_id']),
  )
  const waiting = state.value.items.filter(({ id }) => !read.has(id))
  if (waiting.length === 0) return null
  return (
    <div class="stack close">
      <p class="soft small">{text.undelivered}</p>
      <ul class="stack close">
        {waiting.map(({ id, content }) => (
          <li class="row apart talk-chip" key={id}>
            <span class="grow user-text clip">{content}</span>
            <Button
              onClick={async () => {
                await call('session.cancel_nudge', { project, session_id, nudge_id: id })
                showDone(text.takenBack)
                reload()
              }}
            >
              {text.takeBack}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  )
}

const Files = ({ uploads }: { readonly uploads: Uploads }) =>
  uploads.files.length === 0 ? null : (
    <ul class="talk-chips" aria-label={text.attached}>
      {uploads.files.map(({ key, name, size, preview, block, active, fault }) => (
        <li class="talk-chip row" key={key}>
          {preview !== undefined ? (
            <img class="talk-chip-image" src={preview} alt="" />
          ) : (
            <Icon name="artifacts" />
          )}
          <span class="clip talk-chip-name user-text" title={name}>
            {name}
          </span>
          <span class="soft small">{formatBytes(size)}</span>
          {!block && (
            <span class={fault === undefined ? 'soft small' : 'fault small user-text'}>
              {fault ?? (active ? text.fileUploading : text.fileWaiting)}
            </span>
          )}
          <IconButton
            icon="close"
            label={text.removeFile(name)}
            onClick={() => uploads.remove(key)}
          />
        </li>
      ))}
    </ul>
  )

function FileButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <FileInput picker={input} label={text.files} onPick={onFiles} />
      <Button icon="upload" onClick={() => input.current?.click()}>
        {text.attach}
      </Button>
    </>
  )
}

/** Accepts files that are dropped anywhere on the page, and shows a hint while they are dragged. */
function Drop({ uploads }: { readonly uploads: Uploads }) {
  const over = usePageDrop(uploads.add)
  return over ? <p class="talk-drop">{text.drop}</p> : null
}
