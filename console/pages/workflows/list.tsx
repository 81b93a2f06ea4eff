/** The list of the workflows of a project, and the dialog that creates one. */
import { useEffect } from 'preact/hooks'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { TableFrame } from '../../design/data-table.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Badge } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { ListSearch, NothingFound } from '../build/list-search.tsx'
import { matchesText } from '../build/search.ts'
import { buildText } from '../build/text.ts'
import { CreateDialog } from './create.tsx'
import { workflowsText as text } from './text.ts'

export default function WorkflowsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/workflows`
  const query = currentUrl.value.query.get('q') ?? ''
  const list = useList('workflow.list', { project, limit: 100 }, { kinds: ['workflow'] })
  const { items, more, loading } = list.state.value
  const mayEdit = may('project.edit')
  const isCreating = mayEdit && currentUrl.value.query.get('new') === '1'
  const create = (): void => setQuery({ new: '1' }, { push: true })
  const rows = useRowKeys<HTMLTableSectionElement>()
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
      actions={mayEdit && <PageAction label={text.create} keys="c" onRun={create} />}
    >
      {items.length > 0 && <ListSearch value={query} />}
      <Listed
        of={list}
        lines={6}
        paged={query === ''}
        empty={
          <EmptyCard icon="workflows" title={text.empty}>
            <p>{text.emptyHint}</p>
            {mayEdit ? (
              <Button icon="plus" onClick={create}>
                {text.create}
              </Button>
            ) : (
              <p>{text.emptyReader}</p>
            )}
          </EmptyCard>
        }
      >
        {() =>
          found.length === 0 ? (
            <NothingFound onClear={() => setQuery({ q: '' })} />
          ) : (
            <TableFrame
              label={text.title}
              headings={[
                buildText.name,
                text.handle,
                { name: text.version, number: true },
                buildText.updated,
              ]}
            >
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
            </TableFrame>
          )
        }
      </Listed>
      {isCreating && <CreateDialog project={project} onClose={() => setQuery({ new: '' })} />}
    </Page>
  )
}
