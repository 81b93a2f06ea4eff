/**
 * The field for writing a message, with mentions, files, and a draft that survives a reload. Files
 * are uploaded as artifacts and referenced in the metadata of the message.
 */

import type { RefObject } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import type { ArtifactReference } from '../../../protocol/artifacts/reference.ts'
import type { ChannelMessage } from '../../../protocol/channels/schema.ts'
import { ApiError, call, send } from '../../api/client.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { Icon } from '../../design/icons.tsx'
import { showError } from '../../design/notify.ts'
import { useFileDrop } from '../../files/drop.ts'
import { FileInput } from '../../files/file-input.tsx'
import { useDraft } from '../../shell/drafts.ts'
import { may } from '../../shell/session.ts'
import { complete, type Mentionable, matching, mentionAt, referenceOf } from './mention.ts'
import { channelsText as text } from './text.ts'

/** Maximum number of characters of a message, as in the service. */
const MAX_CHARACTERS = 40_000

/** Uploads files, and collects their references for the message that is being written. */
function useUploads(project: string) {
  const [files, setFiles] = useState<readonly ArtifactReference[]>([])
  const [pending, setPending] = useState<readonly string[]>([])
  const add = async (chosen: Iterable<File>): Promise<void> => {
    for (const file of chosen) {
      setPending((all) => [...all, file.name])
      try {
        const form = new FormData()
        form.append('name', file.name)
        form.append('file', file)
        const path = `/v1/projects/${encodeURIComponent(project)}/artifacts`
        const uploaded = (await (await send('POST', path, form)).json()) as Parameters<
          typeof referenceOf
        >[0]
        setFiles((all) => [...all, referenceOf(uploaded)])
      } catch (error) {
        showError(error)
      } finally {
        setPending((all) => all.filter((_, index) => index !== all.indexOf(file.name)))
      }
    }
  }
  return {
    files,
    pending,
    add,
    /** Removes a file that was not sent, and deletes its artifact. */
    remove: async (id: string): Promise<void> => {
      setFiles((all) => all.filter((file) => file.id !== id))
      await call('artifact.delete', { project, artifact_id: id })
    },
    /** Removes the files of a sent message from the list. */
    sent: (sent: readonly ArtifactReference[]): void =>
      setFiles((all) => all.filter((file) => !sent.includes(file))),
  }
}
type Uploads = ReturnType<typeof useUploads>

const Attached = ({
  uploads: { files, pending, remove },
  disabled,
}: {
  readonly uploads: Uploads
  readonly disabled: boolean
}) =>
  files.length + pending.length === 0 ? null : (
    <ul class="post-files">
      {files.map(({ id, name = id }) => (
        <li key={id} class="post-file">
          <Icon name="artifacts" />
          <span class="clip user-text">{name}</span>
          <IconButton
            icon="close"
            label={text.detach(name)}
            disabled={disabled}
            onClick={() => remove(id)}
          />
        </li>
      ))}
      {pending.map((name, index) => (
        <li key={`${name} ${index}`} class="post-file soft" role="status">
          <span class="clip user-text">{text.uploading(name)}</span>
        </li>
      ))}
    </ul>
  )

/**
 * Completes mentions: provides the suggestions at the caret, and handles the keys that select one.
 */
function useMentions(
  people: readonly Mentionable[],
  value: string,
  setValue: (value: string) => void,
  field: { readonly current: HTMLTextAreaElement | null },
) {
  const [caret, setCaret] = useState(0)
  const [at, setAt] = useState(0)
  const [closed, setClosed] = useState(-1)
  const mention = mentionAt(value, caret)
  const offered = mention && mention.start !== closed ? matching(people, mention.typed) : []
  const chosen = Math.min(at, offered.length - 1)
  const choose = (one: Mentionable | undefined): void => {
    if (!mention || !one) return
    const next = complete(value, mention, one.name)
    setValue(next.text)
    setCaret(next.caret)
    setAt(0)
    requestAnimationFrame(() => {
      field.current?.focus()
      field.current?.setSelectionRange(next.caret, next.caret)
    })
  }
  /** Handles a key. Returns whether the completion consumed it. */
  const onKey = (event: KeyboardEvent): boolean => {
    if (offered.length === 0) return false
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) setAt((chosen + step + offered.length) % offered.length)
    else if (event.key === 'Enter' || event.key === 'Tab') choose(offered[chosen])
    else if (event.key === 'Escape') setClosed(mention?.start ?? -1)
    else return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }
  return { offered, chosen, choose, onKey, setCaret }
}

/** Shows the composer. `onSent` receives the message that was sent. */
export function Composer({
  project,
  channel,
  label,
  replyTo,
  people,
  onSent,
  fieldRef,
}: {
  readonly project: string
  readonly channel: string
  readonly label: string
  /** The root of the thread in which the message is written. */
  readonly replyTo?: string
  readonly people: readonly Mentionable[]
  readonly onSent: (message: ChannelMessage) => void
  readonly fieldRef?: RefObject<HTMLTextAreaElement | null>
}) {
  const id = useId()
  const own = useRef<HTMLTextAreaElement>(null)
  const field = fieldRef ?? own
  const picker = useRef<HTMLInputElement>(null)
  const [value, setValue] = useDraft(`channel.${channel}${replyTo ? `.${replyTo}` : ''}`)
  const [sending, setSending] = useState(false)
  const [fault, setFault] = useState<string>()
  const uploads = useUploads(project)
  const mayAttach = may('project.edit')
  const { offered, chosen, choose, onKey, setCaret } = useMentions(people, value, setValue, field)
  const follow = (): void => setCaret(field.current?.selectionStart ?? 0)
  const submit = async (): Promise<void> => {
    const { files } = uploads
    const content = value.trim() || files.map(({ name }) => name).join(', ')
    if (content === '' || sending || uploads.pending.length > 0) return
    setSending(true)
    setFault(undefined)
    try {
      const message = await call('channel.send', {
        project,
        id: channel,
        content,
        ...(replyTo !== undefined && { reply_to: replyTo }),
        ...(files.length > 0 && { metadata: { artifacts: files } }),
      } as Parameters<typeof call<'channel.send'>>[1])
      // What was typed and attached while the message was being sent is kept.
      if (!field.current || field.current.value === value) setValue('')
      uploads.sent(files)
      onSent(message)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault([error.message, ...error.fields.map((one) => one.message)].join(' '))
    } finally {
      setSending(false)
      field.current?.focus()
    }
  }
  const { over, target } = useFileDrop(mayAttach, (files) => void uploads.add(files))
  const pasted = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])]
    if (!mayAttach || files.length === 0) return
    event.preventDefault()
    void uploads.add(files)
  }
  return (
    <form
      class={over ? 'post-form dropping' : 'post-form'}
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
      {...target}
    >
      {offered.length > 0 && (
        <div id={`${id}-list`} class="post-mentions" role="listbox" aria-label={text.suggestions}>
          {offered.map((one, index) => (
            <div
              key={one.id}
              id={`${id}-${index}`}
              class="menu-item"
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              onMouseDown={(event) => {
                event.preventDefault()
                choose(one)
              }}
            >
              <Icon name={one.kind === 'agent' ? 'agents' : 'user'} />
              <span class="user-text clip">{one.name}</span>
            </div>
          ))}
        </div>
      )}
      <textarea
        ref={field}
        class="input"
        dir="auto"
        rows={1}
        aria-label={label}
        placeholder={label}
        maxLength={MAX_CHARACTERS}
        value={value}
        aria-controls={offered.length > 0 ? `${id}-list` : undefined}
        aria-autocomplete="list"
        aria-activedescendant={offered.length > 0 ? `${id}-${chosen}` : undefined}
        aria-describedby={`${id}-hint`}
        onInput={({ currentTarget }) => {
          setValue(currentTarget.value)
          setCaret(currentTarget.selectionStart)
        }}
        onClick={follow}
        onKeyUp={follow}
        onPaste={pasted}
        onKeyDown={(event) => {
          if (event.isComposing || onKey(event)) return
          if (event.key !== 'Enter' || event.shiftKey) return
          event.preventDefault()
          void submit()
        }}
      />
      <Attached uploads={uploads} disabled={sending} />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="row apart">
        <span id={`${id}-hint`} class="soft small grow">
          {over ? text.dropHere : text.sendHint}
        </span>
        {mayAttach && (
          <>
            <FileInput picker={picker} onPick={(files) => void uploads.add(files)} />
            <IconButton icon="upload" label={text.attach} onClick={() => picker.current?.click()} />
          </>
        )}
        <Button
          kind="primary"
          icon="send"
          submit
          disabled={sending || (value.trim() === '' && uploads.files.length === 0)}
        >
          {text.send}
        </Button>
      </div>
    </form>
  )
}
