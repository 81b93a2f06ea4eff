/**
 * The memory of an agent, updated live: entries that can be edited and deleted, and the history.
 */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, type CallReply, call } from '../../api/client.ts'
import { useList, useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { SearchField } from '../../design/field.tsx'
import { EmptyCard, More } from '../../design/listed.tsx'
import { showDone, showError } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Badge, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Markdown } from '../../markdown/markdown.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { EntryDialog, type MemoryEntry } from './memory-entry.tsx'
import { agentsText as text } from './text.ts'

type Change = CallReply<'memory.changes'>['items'][number]
/** Maximum number of changes that the history shows: the newest ones. */
const MAX_CHANGES = 4000

const kindText: Readonly<Record<MemoryEntry['kind'], string>> = {
  fact: text.fact,
  preference: text.preference,
  episode: text.episode,
  summary: text.summaryKind,
}
const operations: Readonly<Record<Change['operation'], string>> = {
  created: text.created,
  updated: text.updated,
  deleted: text.removed,
}
const reasons: Readonly<Record<Change['reason'], string>> = {
  remembered: text.byAgent,
  api: text.byPerson,
  soft_cap: text.byLimit,
}

/** Lists the memory entries of the agent `id`, with a search. */
export function Memory({ project, id }: { readonly project: string; readonly id: string }) {
  const { query } = currentUrl.value
  const wanted = query.get('memory') ?? ''
  const changes = { kinds: ['memory'], id }
  const list = useList(
    'memory.entries',
    { project, id, limit: 50, ...(wanted.trim() !== '' && { query: wanted.trim() }) },
    changes,
  )
  const counts = useQuery('memory.get', { project, id }, changes).state.value.data
  const [edited, setEdited] = useState<MemoryEntry | 'new'>()
  const [forgotten, setForgotten] = useState<MemoryEntry>()
  const { items, loading, error } = list.state.value
  const mayEdit = may('project.edit')
  return (
    <div class="stack">
      <div class="row apart">
        <div class="row session-filters grow">
          <SearchField
            label={text.memorySearch}
            value={wanted}
            onValue={(memory) => setQuery({ memory })}
          />
          {counts && <span class="soft">{text.memoryCount(counts.entry_count)}</span>}
        </div>
        {mayEdit && (
          <Button icon="plus" onClick={() => setEdited('new')}>
            {text.memoryAdd}
          </Button>
        )}
      </div>
      {error && <Failure error={error} retry={list.reload} />}
      {items.length === 0 && loading && <Skeleton />}
      {items.length === 0 &&
        !loading &&
        !error &&
        (wanted === '' ? (
          <EmptyCard title={text.memoryNone}>
            <p>{text.memoryNoneHint}</p>
          </EmptyCard>
        ) : (
          <EmptyCard icon="search" title={text.memoryNoMatch} />
        ))}
      <ul class="stack close">
        {items.map((entry) => (
          <li class="card" key={entry.key}>
            <header>
              <div class="row">
                <h3 class="user-text mono">{entry.key}</h3>
                <Badge>{kindText[entry.kind]}</Badge>
                {entry.pinned && <Badge tone="accent">{text.pinnedShort}</Badge>}
                <span class="soft small">
                  {text.version(entry.version)} · <Time at={entry.updated_at} relative />
                </span>
              </div>
              {mayEdit && (
                <div class="row">
                  <Button icon="edit" title={text.edit(entry.key)} onClick={() => setEdited(entry)}>
                    {text.editShort}
                  </Button>
                  <Button icon="trash" danger onClick={() => setForgotten(entry)}>
                    {text.forget}
                  </Button>
                </div>
              )}
            </header>
            <div class="body">
              <Markdown text={entry.content ?? entry.summary ?? ''} />
            </div>
          </li>
        ))}
      </ul>
      <More of={list} />
      <History project={project} id={id} changed={counts?.updated_at ?? ''} />
      {edited && (
        <EntryDialog
          project={project}
          agent={id}
          {...(edited !== 'new' && { entry: edited })}
          onClose={() => setEdited(undefined)}
        />
      )}
      {forgotten && (
        <Confirm
          title={text.forgetQuestion(forgotten.key)}
          action={text.forget}
          danger
          onConfirm={async () => {
            await call('memory.forget', { project, id, memory_key: forgotten.key })
            showDone(text.forgotten)
            list.reload()
          }}
          onClose={() => setForgotten(undefined)}
        >
          <p>{text.forgetHint}</p>
        </Confirm>
      )}
    </div>
  )
}

/** Shows the changes to the memory, newest first. The service lists the oldest first. */
function History({
  project,
  id,
  changed,
}: {
  readonly project: string
  readonly id: string
  readonly changed: string
}) {
  const [isOpen, setOpen] = useState(false)
  const [changes, setChanges] = useState<readonly Change[]>()
  useEffect(() => {
    if (!isOpen) return
    const stop = new AbortController()
    void (async () => {
      const found: Change[] = []
      let after: string | undefined
      for (;;) {
        const { items, has_more, next_cursor } = await call(
          'memory.changes',
          { project, id, limit: 200, ...(after !== undefined && { after }) },
          { signal: stop.signal },
        )
        found.push(...items)
        found.splice(0, found.length - MAX_CHANGES)
        after = next_cursor
        if (!has_more) break
      }
      setChanges(found.reverse())
    })().catch((error: unknown) => {
      if (error instanceof ApiError) showError(error)
    })
    return () => stop.abort()
  }, [project, id, changed, isOpen])
  return (
    <details class="folded" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{text.history}</summary>
      {isOpen && (
        <div class="folded-body">
          {!changes && <Skeleton lines={3} />}
          {changes?.length === 0 && <p class="soft">{text.historyNone}</p>}
          <ul class="card recent">
            {changes?.map((one) => (
              <li key={one.id}>
                <span class="grow">
                  <code class="user-text">{one.memory_key}</code> {operations[one.operation]}{' '}
                  {reasons[one.reason]}
                  <span class="soft small"> {text.version(one.version)}</span>
                </span>
                {one.source_run_id !== undefined && (
                  <a href={`/p/${encodeURIComponent(project)}/runs/${one.source_run_id}`}>
                    {one.source_run_id}
                  </a>
                )}
                <span class="soft small">
                  <Time at={one.created_at} />
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </details>
  )
}
