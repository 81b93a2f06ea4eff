import { Page, type PageProps } from '../../../shell/page.tsx'
export default function RunsPage(_: PageProps) {
  return <Page title="Runs">…</Page>
}
