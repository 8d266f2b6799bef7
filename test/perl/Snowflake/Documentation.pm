# The SQL in the documentation: blocks of README.md and doc/*.md, with the output that follows them.
#
#     foreach my $block (blocks('doc/clocks.md')) { ... $block->{sql}, $block->{output} ... }
#     my $sql = sql_like('doc/operations.md', qr/^DO \$\$/);
#
# A comment before a block, <!-- test: word word=value -->, tells what is to be done with it; CONTRIBUTING.md lists
# these words.  A block, its comment and its output may be indented, as part of a list.

package Snowflake::Documentation;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use PostgreSQL::Test::Utils qw(slurp_file);

our @EXPORT_OK = qw(pages blocks sql_like);

sub pages
{
	return ('README.md', sort glob 'doc/*.md');
}

sub without_indent
{
	my ($text, $indent) = @_;

	return defined $text ? $text =~ s/^$indent//gmr : undef;
}

# Each has: page, line, marks (word => value), sql, output; start and length of the output in the page's text.
sub blocks
{
	my ($page) = @_;
	my $text = slurp_file($page);
	my @found;

	while ($text =~ /
			(?:^(?<indent>[ ]*)<!--\ test:\ (?<marks>.*?)\ -->\n)?
			^(?<own>[ ]*)```sql\n (?<sql>.*?\n) \k<own>```\n
			(?:\n*(?=\k<own>```\n))?
			(?:\k<own>```\n (?<output>.*?\n) \k<own>```\n)? /msxg)
	{
		my %block = (
			page => $page,
			line => 1 + (substr($text, 0, $-[0]) =~ tr/\n//),
			marks => { map { /^(.*?)=(.*)$/ ? ($1 => $2) : ($_ => 1) } split / /, $+{marks} // '' },
			sql => without_indent($+{sql}, $+{own}),
			output => without_indent($+{output}, $+{own}),
			indent => $+{own});

		if (defined $+{output})
		{
			$block{length} = length $+{output};
			$block{start} = pos($text) - length("$block{indent}```\n") - $block{length};
		}
		push @found, \%block;
	}
	return @found;
}

# The one block of a page that matches.
sub sql_like
{
	my ($page, $pattern) = @_;
	my @found = grep { $_->{sql} =~ $pattern } blocks($page);

	die @found . " blocks of $page match $pattern" if @found != 1;
	return $found[0]->{sql};
}

1;
