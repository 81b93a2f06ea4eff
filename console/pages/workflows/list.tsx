/** The list of the workflows of a project, and the dialog that creates one. */
import { useEffect } from 'preact/hooks'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { SearchField } from '../../design/field.tsx'
import { Badge, Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { place, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { matchesText } from '../build/search.ts'
import { buildText } from '../build/text.ts'
import { CreateDialog } from './create.tsx'
import { workflowsText as text } from './text.ts'

export default function WorkflowsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/workflows`
  const query = place.value.query.get('q') ?? ''
  const list = useList('workflow.list', { project, limit: 100 }, { kinds: ['workflow'] })
  const { items, more, loading, error } = list.state.value
  const mayEdit = may('project.edit')
  const isCreating = mayEdit && place.value.query.get('new') === '1'
  const create = (): void => setQuery({ new: '1' }, { push: true })
  const rows = useRowKeys<HTMLTableSectionElement>()
  useCommands(
    mayEdit
      ? [{ id: 'workflow.new', label: text.create, icon: 'plus', keys: 'c', run: create }]
      : [],
    [mayEdit],
  )
  // A search covers all workflows, so all pages are loaded.
  useEffect(() => {
    if (query !== '' && more && !loading) list.more()
  }, [query, more, loading])
  const found = items.filter(({ name, handle, description = '', id }) =>
    matchesText(query, [name, handle, description, id]),
  )
  return (
    <Page
      title={text.title}
      actions={
        mayEdit && (
          <Button kind="primary" icon="plus" onClick={create}>
            {text.create}
          </Button>
        )
      }
    >
      {items.length > 0 && (
        <div class="list-search">
          <SearchField label={buildText.search} value={query} onValue={(q) => setQuery({ q })} />
        </div>
      )}
      {error && <Failure error={error} retry={list.reload} />}
      {items.length === 0 && loading && <Skeleton lines={6} />}
      {items.length === 0 && !loading && !error && (
        <section class="card">
          <Empty icon="workflows" title={text.empty}>
            <p>{text.emptyHint}</p>
            {mayEdit ? (
              <Button icon="plus" onClick={create}>
                {text.create}
              </Button>
            ) : (
              <p>{text.emptyReader}</p>
            )}
          </Empty>
        </section>
      )}
      {items.length > 0 && found.length === 0 && (
        <Empty icon="search" title={buildText.nothingFound}>
          <Button onClick={() => setQuery({ q: '' })}>{buildText.clearSearch}</Button>
        </Empty>
      )}
      {found.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region needs the keyboard
        <div class="table-frame" role="region" aria-label={text.title} tabIndex={0}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{buildText.name}</th>
                <th scope="col">{text.handle}</th>
                <th scope="col" class="number">
                  {text.version}
                </th>
                <th scope="col">{buildText.updated}</th>
              </tr>
            </thead>
            <tbody ref={rows}>
              {found.map((one) => (
                <tr key={one.id}>
                  <td>
                    <div class="row">
                      <a {...rowLink} class="user-text" href={`${base}/${one.id}`}>
                        {one.name}
                      </a>
                      {one.published_as_tool && <Badge tone="accent">{text.tool}</Badge>}
                    </div>
                    {one.description && (
                      <div class="small soft user-text">{one.description.slice(0, 300)}</div>
                    )}
                  </td>
                  <td class="mono user-text">{one.handle}</td>
                  <td class="number">{one.latest_version}</td>
                  <td>
                    <Time at={one.updated_at} relative />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && query === '' && (
        <div>
          <Button disabled={loading} onClick={list.more}>
            {buildText.more}
          </Button>
        </div>
      )}
      {isCreating && <CreateDialog project={project} onClose={() => setQuery({ new: '' })} />}
    </Page>
  )
}
