/** The published events of a project. */
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { place, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { buildText } from '../build/text.ts'
import { Effect } from './effect.tsx'
import { PublishDialog } from './publish.tsx'
import { eventsText as text } from './text.ts'

export default function EventsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/events`
  const { query } = place.value
  const event_type = query.get('type') ?? ''
  const source_id = query.get('source') ?? ''
  const list = useList(
    'event.list',
    {
      project,
      limit: 50,
      ...(event_type !== '' && { event_type }),
      ...(source_id !== '' && { source_id }),
    },
    { kinds: ['event'] },
  )
  const { items, more, loading, error } = list.state.value
  const mayPublish = may('runs.operate')
  const publish = (): void => setQuery({ new: '1' }, { push: true })
  const rows = useRowKeys<HTMLTableSectionElement>()
  useCommands(
    mayPublish
      ? [{ id: 'event.new', label: text.publish, icon: 'plus', keys: 'c', run: publish }]
      : [],
    [mayPublish],
  )
  const isFiltered = event_type !== '' || source_id !== ''
  const button = mayPublish && (
    <Button kind="primary" icon="plus" onClick={publish}>
      {text.publish}
    </Button>
  )
  return (
    <Page title={text.title} actions={button}>
      {(items.length > 0 || isFiltered) && (
        <div class="row filters">
          <TextField
            label={text.filterType}
            value={event_type}
            placeholder="order.paid"
            onValue={(type) => setQuery({ type })}
          />
          <TextField
            label={text.filterSource}
            value={source_id}
            onValue={(source) => setQuery({ source })}
          />
        </div>
      )}
      {error && <Failure error={error} retry={list.reload} />}
      {items.length === 0 && loading && <Skeleton lines={6} />}
      {items.length === 0 &&
        !loading &&
        !error &&
        (isFiltered ? (
          <Empty icon="search" title={text.notFound}>
            <Button onClick={() => setQuery({ type: '', source: '' })}>
              {buildText.clearSearch}
            </Button>
          </Empty>
        ) : (
          <section class="card">
            <Empty icon="star" title={text.empty}>
              <p>{text.emptyHint}</p>
              {mayPublish && (
                <Button icon="plus" onClick={publish}>
                  {text.publish}
                </Button>
              )}
            </Empty>
          </section>
        ))}
      {items.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region needs the keyboard
        <div class="table-frame" role="region" aria-label={text.title} tabIndex={0}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{text.type}</th>
                <th scope="col">{text.source}</th>
                <th scope="col">{text.time}</th>
                <th scope="col">{text.effect}</th>
              </tr>
            </thead>
            <tbody ref={rows}>
              {items.map((event) => (
                <tr key={event.id}>
                  <td>
                    <a {...rowLink} class="mono user-text" href={`${base}/${event.id}`}>
                      {event.event_type}
                    </a>
                  </td>
                  <td class="user-text">
                    <span class="user-text">{event.source_id}</span>{' '}
                    <span class="soft small">{event.source_kind}</span>
                  </td>
                  <td>
                    <Time at={event.occurred_at} relative />
                  </td>
                  <td>
                    <Effect event={event} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && (
        <div>
          <Button disabled={loading} onClick={list.more}>
            {buildText.more}
          </Button>
        </div>
      )}
      {mayPublish && query.get('new') === '1' && (
        <PublishDialog project={project} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}
