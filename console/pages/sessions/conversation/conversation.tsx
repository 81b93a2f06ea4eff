/**
 * A conversation with an agent: the transcript of a session as it grows, and the field for
 * messages. The page of a session and the try-out of an agent use it.
 */
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { announcer } from '../../../../client/chat/announcements.ts'
import { type Entry, entriesOf } from '../../../../client/chat/entries.ts'
import { Button } from '../../../design/button.tsx'
import { Empty, Notice, Skeleton } from '../../../design/states.tsx'
import { may } from '../../../shell/session.ts'
import { useCommands } from '../../../shell/shortcuts.ts'
import { Composer } from './composer.tsx'
import type { FollowedSession } from './followed.ts'
import { QuestionView } from './question.tsx'
import { EndRow, MessageRow } from './rows.tsx'
import { conversationText as text } from './text.ts'
import { useTurnFacts } from './turn-facts.ts'

/** Distance from the end within which the view follows new content. */
const NEAR_END_PX = 80

/** Keeps a scroll area scrolled to its end, unless the person has scrolled away (`away`). */
function useEnd(frame: RefObject<HTMLDivElement | null>, version: number) {
  const [away, setAway] = useState(false)
  const near = useRef(true)
  const before = useRef({ height: 0, first: '' })
  const toEnd = (): void => {
    const element = frame.current
    if (element) element.scrollTop = element.scrollHeight
    near.current = true
    setAway(false)
  }
  const onScroll = (): void => {
    const element = frame.current
    if (!element) return
    near.current = element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_END_PX
    setAway(!near.current)
  }
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const first = element.querySelector<HTMLElement>('[data-id]')?.dataset['id'] ?? ''
    // Keep the visible messages in place: if earlier messages were inserted at the top, scroll by
    // their height.
    const { height, first: known } = before.current
    if (near.current) element.scrollTop = element.scrollHeight
    else if (known !== '' && first !== known) element.scrollTop += element.scrollHeight - height
    before.current = { height: element.scrollHeight, first }
  }, [version])
  useEffect(() => {
    const element = frame.current
    if (!element) return
    // The height also changes when images load or parts are expanded. The version does not.
    const observer = new ResizeObserver(() => {
      if (near.current) element.scrollTop = element.scrollHeight
    })
    observer.observe(element)
    for (const child of element.children) observer.observe(child)
    return () => observer.disconnect()
  }, [frame.current, version === 0])
  return { away, toEnd, onScroll }
}

/** Shows a session. `agent` is the name of its agent, `channel` the id of its channel. */
export function Conversation({
  project,
  session_id,
  agent,
  followed,
  channel,
  archived = false,
}: {
  readonly project: string
  readonly session_id: string
  readonly agent: string
  readonly followed: FollowedSession
  readonly channel?: string | undefined
  readonly archived?: boolean
}) {
  const version = followed.version.value
  const status = followed.status.value
  const loaded = followed.loaded.value
  const frame = useRef<HTMLDivElement>(null)
  const field = useRef<HTMLTextAreaElement>(null)
  const [said, setSaid] = useState('')
  const { away, toEnd, onScroll } = useEnd(frame, version)
  const { transcript } = followed
  const { entries, results } = useMemo(() => entriesOf(transcript), [transcript, version])
  const address = useMemo(() => ({ project, session_id }), [project, session_id])
  const facts = useTurnFacts(project, session_id, transcript.turns.values(), version)
  const name = useRef(agent)
  name.current = agent
  const announcementOf = useMemo(() => announcer(() => name.current), [followed])
  useEffect(() => {
    if (!loaded) return
    const announcement = announcementOf(entries)
    if (announcement !== '') setSaid(announcement)
  }, [entries, loaded])
  const mayWrite = may('agent.invoke')
  const focus = (): void => field.current?.focus()
  useCommands(
    [
      ...(mayWrite && !archived
        ? [{ id: 'write', label: text.writeCommand, icon: 'edit' as const, keys: 'm', run: focus }]
        : []),
      { id: 'newest', label: text.newestCommand, icon: 'down', keys: 'b', run: toEnd },
    ],
    [followed, mayWrite, archived],
  )
  const rowOf = (entry: Entry) => {
    switch (entry.kind) {
      case 'message':
        return (
          <MessageRow
            key={entry.key}
            message={entry.message}
            turn={transcript.turns.get(entry.message.turn_id ?? '')}
            asker={facts.get(entry.message.turn_id ?? '')?.asker}
            results={results}
            agent={agent}
            address={address}
            channel={channel}
          />
        )
      case 'question':
        return (
          <li key={entry.key} data-id={entry.key}>
            <QuestionView
              interaction={entry.interaction}
              project={project}
              answered={(interaction) => followed.answered(interaction)}
              done={focus}
            />
          </li>
        )
      case 'end':
        return <EndRow key={entry.key} turn={entry.turn} milli={facts.get(entry.turn.id)?.milli} />
    }
  }
  const { fault } = status
  return (
    <div class="conversation">
      {status.state === 'waiting' && <Notice tone="warn">{text.lost}</Notice>}
      {status.state === 'refused' && (
        <Notice tone="bad">
          <span class="user-text">{fault?.message}</span>
        </Notice>
      )}
      <div class="conversation-frame">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling needs the keyboard */}
        <div class="conversation-scroll" ref={frame} tabIndex={0} onScroll={onScroll}>
          <div class="conversation-content">
            {(followed.first ?? 1) > 1 && (
              <p class="row center">
                <Button onClick={() => followed.earlier()}>{text.earlier}</Button>
              </p>
            )}
            {!loaded && status.state !== 'refused' && <Skeleton lines={5} />}
            {loaded && entries.length === 0 && (
              <Empty icon="sessions" title={text.nothing}>
                <p class="user-text">{mayWrite ? text.nothingHint(agent) : text.nothingReadOnly}</p>
              </Empty>
            )}
            <ol class="talk-messages" aria-label={text.conversation}>
              {entries.map(rowOf)}
            </ol>
          </div>
        </div>
        {away && (
          <div class="to-newest">
            <Button icon="down" onClick={toEnd}>
              {text.newest}
            </Button>
          </div>
        )}
      </div>
      <div class="unseen" role="status" aria-live="polite">
        {said}
      </div>
      {archived ? (
        <Notice>{text.archived}</Notice>
      ) : mayWrite ? (
        <Composer
          project={project}
          session_id={session_id}
          agent={agent}
          followed={followed}
          field={field}
          announce={setSaid}
          onSent={toEnd}
        />
      ) : (
        <Notice>{text.readOnly}</Notice>
      )}
    </div>
  )
}
