/**
 * The timeline of a channel. It shows the newest messages and grows upwards while the person
 * scrolls up. At the bottom, it follows new messages.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Button } from '../../design/button.tsx'
import { showError } from '../../design/notify.ts'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { formatDay } from '../../text/format.ts'
import { lastReplies, linesOf, rootsOf } from './feed.ts'
import { elementId, type MessageContext, MessageLine, togglePin } from './message.tsx'
import { useScrollPosition } from './scroll-position.ts'
import { channelsText as text } from './text.ts'
import type { Messages } from './use-messages.ts'

/** Number of messages that are rendered initially, and by which the timeline grows. */
const WINDOW_SIZE = 100
/** Distance from the top within which older messages are loaded. */
const NEAR_TOP_PX = 600

/** Shows the messages. `onRead` receives the newest `seq` that the person has seen. */
export function Timeline({
  messages,
  around,
  readUpTo,
  onRead,
}: {
  readonly messages: Messages
  readonly around: MessageContext
  readonly readUpTo: number | undefined
  readonly onRead: (seq: number) => void
}) {
  const { feed, loaded, loading, error } = messages.state.value
  const [from, setFrom] = useState<number>()
  const [atBottom, setAtBottom] = useState(true)
  const seen = useSignal(0)
  const roots = useMemo(() => rootsOf(feed), [feed])
  const replies = useMemo(() => lastReplies(feed), [feed])
  const first = from === undefined ? Math.max(0, roots.length - WINDOW_SIZE) : indexOf(roots, from)
  const lines = useMemo(
    () => linesOf(roots.slice(first), readUpTo, around.me),
    [roots, first, readUpTo, around.me],
  )
  const { area, content, held, measure, restore } = useScrollPosition(lines, loaded)
  const newest = feed.items.at(-1)?.seq ?? 0
  const marked = currentUrl.value.query.get('message') ?? ''

  const grow = (): void => {
    if (first > 0) setFrom(roots[Math.max(0, first - WINDOW_SIZE)]?.seq)
    else if (feed.older !== undefined && !loading) {
      setFrom(0)
      void messages.older()
    }
  }
  const onScroll = (): void => {
    measure()
    const { atBottom: bottom } = held.current
    setAtBottom(bottom)
    if (bottom && from !== undefined && roots.length - first > 3 * WINDOW_SIZE) setFrom(undefined)
    if ((area.current?.scrollTop ?? NEAR_TOP_PX) < NEAR_TOP_PX && !bottom) grow()
  }
  useWhileRead(() => {
    if (!held.current.atBottom || newest === 0) return
    seen.value = newest
    if (document.hasFocus()) onRead(newest)
  }, [newest, atBottom])

  // Scrolls to the linked message once it is loaded.
  const target = feed.items.find(({ id }) => id === marked)
  const targetSeq = target?.seq
  useEffect(() => {
    if (targetSeq === undefined || target?.reply_to !== undefined) return
    held.current.atBottom = false
    setFrom(roots[Math.max(0, indexOf(roots, targetSeq) - WINDOW_SIZE / 2)]?.seq)
    requestAnimationFrame(() => {
      const element = document.getElementById(elementId(marked))
      element?.scrollIntoView({ block: 'center' })
      element?.focus({ preventScroll: true })
      onScroll()
    })
  }, [marked, targetSeq])

  const toBottom = (): void => {
    if (marked !== '') setQuery({ message: '' })
    setFrom(undefined)
    held.current.atBottom = true
    setAtBottom(true)
    requestAnimationFrame(restore)
  }
  useMessageKeys(content.current, around, roots, measure)
  const below = roots.filter(({ seq }) => seq > seen.value).length
  const isEmpty = loaded && feed.items.length === 0
  return (
    <div class="timeline-frame">
      <div
        ref={area}
        class="timeline"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll area needs the keyboard
        tabIndex={0}
        onScroll={onScroll}
        aria-label={text.messages}
        role="region"
      >
        {error && <Failure error={error} retry={messages.reload} />}
        {!loaded && loading && <Skeleton lines={8} />}
        {isEmpty && (
          <Empty icon="channels" title={text.empty}>
            <p>{text.emptyHint}</p>
          </Empty>
        )}
        {loaded && !isEmpty && first === 0 && feed.older === undefined && (
          <p class="timeline-first soft small">{text.first}</p>
        )}
        {loaded && (first > 0 || feed.older !== undefined) && (
          <div class="timeline-first">
            <Button kind="quiet" onClick={grow} disabled={loading}>
              {text.older}
            </Button>
          </div>
        )}
        <ol ref={content} class="post-list">
          {lines.map((line) =>
            line.kind === 'day' ? (
              <li key={line.key} class="post-divider">
                <time dateTime={line.at}>{formatDay(Date.parse(line.at))}</time>
              </li>
            ) : line.kind === 'unread' ? (
              <li key={line.key} class="post-divider unread">
                <span>{text.newMessages}</span>
              </li>
            ) : (
              <MessageLine
                key={line.key}
                around={around}
                message={line.message}
                head={line.head}
                last={replies.get(line.key)}
                marked={line.key === marked}
              />
            ),
          )}
        </ol>
      </div>
      {!atBottom && (
        <div class="to-bottom">
          <Button icon="down" {...(below > 0 && { kind: 'primary' as const })} onClick={toBottom}>
            {text.below(below)}
          </Button>
        </div>
      )}
      <p class="unseen" role="status">
        {!atBottom && below > 0 ? text.below(below) : ''}
      </p>
    </div>
  )
}

/**
 * Calls `note` while the page is visible: at first, after each change of `changes`, and when the
 * person returns to the page.
 */
function useWhileRead(note: () => void, changes: readonly unknown[]): void {
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState === 'visible') note()
    }
    look()
    addEventListener('focus', look)
    document.addEventListener('visibilitychange', look)
    return () => {
      removeEventListener('focus', look)
      document.removeEventListener('visibilitychange', look)
    }
  }, changes)
}

/** Returns the index of the first message with at least this `seq`, or else the last index. */
function indexOf(messages: readonly { readonly seq: number }[], seq: number): number {
  const index = messages.findIndex((one) => one.seq >= seq)
  return index < 0 ? Math.max(0, messages.length - 1) : index
}

/** Handles the keys with which a person moves through the messages and acts on the active one. */
function useMessageKeys(
  list: HTMLElement | null,
  around: MessageContext,
  roots: readonly Parameters<typeof togglePin>[1][],
  measure: () => void,
): void {
  const { active, editing, writable, me } = around
  const walk = (step: 1 | -1): void => {
    const all = [...(list?.querySelectorAll<HTMLElement>('[data-message]') ?? [])]
    const at = all.findIndex((one) => one.contains(document.activeElement))
    const next = at < 0 ? all.at(-1) : all[Math.max(0, Math.min(all.length - 1, at + step))]
    next?.focus({ preventScroll: true })
    next?.scrollIntoView({ block: 'nearest' })
    measure()
  }
  const current = () => roots.find(({ id }) => id === active.peek())
  useCommands(
    [
      { id: 'message next', label: text.nextMessage, keys: 'j', run: () => walk(1) },
      { id: 'message previous', label: text.previousMessage, keys: 'k', run: () => walk(-1) },
      {
        id: 'message thread',
        label: text.reply,
        keys: 't',
        run: () => {
          const message = current()
          if (message) setQuery({ thread: message.id, panel: '' })
        },
      },
      ...(writable
        ? [
            {
              id: 'message pin',
              label: text.pinOrUnpin,
              keys: 'p',
              run: () => {
                const message = current()
                if (message) void togglePin(around, message).catch(showError)
              },
            },
            {
              id: 'message edit',
              label: text.edit,
              keys: 'e',
              run: () => {
                const message = current()
                if (message?.sender_id !== me) return
                editing.value = message.id
                requestAnimationFrame(() =>
                  document
                    .querySelector<HTMLElement>(`#${elementId(message.id)} textarea`)
                    ?.focus(),
                )
              },
            },
          ]
        : []),
    ],
    [list, roots, writable, me],
  )
}
