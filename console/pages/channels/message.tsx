/** One message of a channel, with its files, its thread and its actions. */
import { type Signal, useComputed } from '@preact/signals'
import { useState } from 'preact/hooks'
import {
  type ArtifactReference,
  artifactReferences,
} from '../../../protocol/artifacts/reference.ts'
import type { ChannelMessage } from '../../../protocol/channels/schema.ts'
import { ApiError, call } from '../../api/client.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { copy } from '../../design/copy.tsx'
import { TextArea } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { showError, showProblem } from '../../design/notify.ts'
import { Badge } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { Markdown } from '../../markdown/markdown.tsx'
import { usePeople } from '../../people/people.ts'
import { Who } from '../../people/who.tsx'
import { setQuery } from '../../router/router.ts'
import { formatBytes } from '../../text/format.ts'
import { channelsText as text } from './text.ts'

/** Context that all messages of a list share. */
export interface MessageContext {
  readonly project: string
  readonly me: string
  /** Whether the person may write in the channel. */
  readonly writable: boolean
  /** Id of the message whose actions are shown; '' for none. */
  readonly active: Signal<string>
  /** Id of the message that is being edited; '' for none. */
  readonly editing: Signal<string>
  readonly onChanged: (message: ChannelMessage) => void
  /** Whether messages link to their threads. False for the messages in a thread. */
  readonly threads: boolean
}

/** Returns the element id of a message in the timeline or, with `thread`, in a thread. */
export const elementId = (message: string, thread = false): string =>
  `${thread ? 'reply' : 'message'}-${message}`

/** A decorative badge with the first letter of a name, or with an icon for an agent. */
export function Portrait({ name, agent }: { readonly name: string; readonly agent: boolean }) {
  const letters = [...name.trim()].slice(0, 1).join('').toUpperCase()
  return (
    <span class={agent ? 'portrait agent' : 'portrait'} aria-hidden="true">
      {agent ? <Icon name="agents" /> : letters}
    </span>
  )
}

/** Starts a download. Shows a failure if the file was deleted or may not be read. */
async function download(project: string, id: string, link: HTMLAnchorElement): Promise<void> {
  try {
    await call('artifact.get', { project, artifact_id: id })
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return showProblem(text.noFile)
    return showError(error)
  }
  const opened = document.createElement('a')
  opened.href = link.href
  opened.download = link.download
  opened.click()
}

/**
 * Lists the files that a message references. Access to them is checked when they are downloaded.
 */
function Files({
  project,
  files,
}: {
  readonly project: string
  readonly files: readonly ArtifactReference[]
}) {
  if (files.length === 0) return null
  const base = `/v1/projects/${encodeURIComponent(project)}/artifacts`
  return (
    <ul class="post-files">
      {files.map(({ id, name = id, size }) => (
        <li key={id}>
          <a
            class="post-file"
            href={`${base}/${encodeURIComponent(id)}/content?download=true`}
            download={name}
            onClick={(event) => {
              event.preventDefault()
              void download(project, id, event.currentTarget)
            }}
          >
            <Icon name="artifacts" />
            <span class="clip user-text">{name}</span>
            <span class="soft small">{formatBytes(size)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

function Edit({
  around,
  message,
}: {
  readonly around: MessageContext
  readonly message: ChannelMessage
}) {
  const [content, setContent] = useState(message.content)
  const close = (): void => {
    around.editing.value = ''
    requestAnimationFrame(() =>
      document.getElementById(elementId(message.id, !around.threads))?.focus(),
    )
  }
  const save = async (): Promise<void> => {
    if (content.trim() === '') return
    const { id, channel_id } = message
    const { project } = around
    around.onChanged(
      await call('channel.edit', { project, id: channel_id, message_id: id, content }),
    )
    close()
  }
  return (
    <div class="stack close">
      <TextArea
        label={text.editLabel}
        unlabelled
        value={content}
        onValue={setContent}
        rows={2}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.preventDefault()
            event.stopPropagation()
            close()
          }
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            void save().catch(showError)
          }
        }}
      />
      <div class="row">
        <Button kind="primary" onClick={save}>
          {text.save}
        </Button>
        <Button onClick={close}>{designText.cancel}</Button>
      </div>
    </div>
  )
}

/** Pins or unpins a message. */
export async function togglePin(around: MessageContext, message: ChannelMessage): Promise<void> {
  const { id, channel_id, pinned } = message
  const { project } = around
  around.onChanged(
    await call('channel.edit', { project, id: channel_id, message_id: id, pinned: !pinned }),
  )
}
const openThread = (id: string): void => setQuery({ thread: id, panel: '' })

function Actions({
  around,
  message,
}: {
  readonly around: MessageContext
  readonly message: ChannelMessage
}) {
  const { project, me, writable, threads, editing } = around
  const { id, channel_id, pinned, sender_id, content } = message
  const address = `/p/${encodeURIComponent(project)}/channels/${channel_id}?message=${id}`
  return (
    <div class="post-actions">
      {threads && <IconButton icon="sessions" label={text.reply} onClick={() => openThread(id)} />}
      {writable && (
        <IconButton
          icon="pin"
          label={pinned ? text.unpin : text.pin}
          pressed={pinned}
          onClick={() => togglePin(around, message)}
        />
      )}
      {writable && sender_id === me && (
        <IconButton
          icon="edit"
          label={text.edit}
          onClick={() => {
            editing.value = id
            requestAnimationFrame(() =>
              document.querySelector<HTMLElement>(`#${elementId(id, !threads)} textarea`)?.focus(),
            )
          }}
        />
      )}
      <IconButton icon="copy" label={text.copyText} onClick={() => copy(content)} />
      <IconButton
        icon="external"
        label={text.copyLink}
        onClick={() => copy(new URL(address, location.href).href)}
      />
    </div>
  )
}

/** Shows a message. Without `head`, the author is hidden, but screen readers announce it. */
export function MessageLine({
  around,
  message,
  head,
  last,
  marked = false,
}: {
  readonly around: MessageContext
  readonly message: ChannelMessage
  readonly head: boolean
  /** The newest loaded reply in its thread. */
  readonly last?: ChannelMessage | undefined
  /** Whether the URL links to this message. */
  readonly marked?: boolean
}) {
  const { project, threads, active, editing } = around
  const { id, sender_id, sender_type, created_at, content, pinned, edited_at } = message
  const { nameOf } = usePeople(project)
  const name = nameOf(sender_id) ?? sender_id
  const isActive = useComputed(() => active.value === id)
  const isEdited = useComputed(() => editing.value === id)
  const count = message.reply_count ?? 0
  const activate = (): void => {
    active.value = id
  }
  const base = `/p/${encodeURIComponent(project)}`
  return (
    <li
      id={elementId(id, !threads)}
      data-message={id}
      class={['post', head && 'head', marked && 'target'].filter(Boolean).join(' ')}
      tabIndex={-1}
      onMouseEnter={activate}
      onFocusCapture={activate}
    >
      {head ? (
        <Portrait name={name} agent={sender_type === 'agent'} />
      ) : (
        <span class="post-time soft">
          <Time at={created_at} />
        </span>
      )}
      <div class="post-body">
        <div class={head ? 'post-head' : 'unseen'}>
          <strong>
            <Who project={project} id={sender_id} />
          </strong>
          {sender_type === 'agent' && <Badge tone="info">{text.agent}</Badge>}
          {head && (
            <span class="soft small">
              <Time at={created_at} />
            </span>
          )}
          {message.sender_session_id && (
            <a
              class="small"
              href={`${base}/sessions/${encodeURIComponent(message.sender_session_id)}`}
            >
              {text.session}
            </a>
          )}
        </div>
        {isEdited.value ? <Edit around={around} message={message} /> : <Markdown text={content} />}
        <Files project={project} files={artifactReferences(message.metadata)} />
        <div class="post-foot small">
          {pinned && (
            <span class="soft">
              <Icon name="pin" /> {text.pinned}
            </span>
          )}
          {edited_at && !pinned && <span class="soft">{text.edited}</span>}
          {threads && count > 0 && (
            <button type="button" class="thread-link" onClick={() => openThread(id)}>
              {text.replies(count)}
              {last && (
                <span class="soft">
                  {' · '}
                  {text.lastReply} <Who project={project} id={last.sender_id} />
                  {', '}
                  <Time at={last.created_at} relative />
                </span>
              )}
            </button>
          )}
        </div>
      </div>
      {isActive.value && !isEdited.value && <Actions around={around} message={message} />}
    </li>
  )
}
