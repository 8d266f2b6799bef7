# Data directories for servers: initdb runs once for all tests of a run, and each server has a copy, which takes a fifth
# of the processor time.
#
# PostgreSQL has the same from 17 on (INITDB_TEMPLATE), but there all servers have one system identifier, by which a
# registry tells servers from each other.  Here each gets its own.

package Snowflake::Template;

use strict;
use warnings FATAL => 'all';

use Fcntl qw(:flock);
use PostgreSQL::Test::Utils ();
use Time::HiRes qw(gettimeofday);

my $run = \&PostgreSQL::Test::Utils::system_or_bail;
my @crc_table = map { my $crc = $_; $crc = $crc & 1 ? $crc >> 1 ^ 0x82F63B78 : $crc >> 1 foreach 1 .. 8; $crc } 0 .. 255;

# What PostgreSQL::Test::Cluster calls.
{
	no warnings 'redefine';
	*PostgreSQL::Test::Utils::system_or_bail = sub { return $_[0] eq 'initdb' ? copy_template(@_) : $run->(@_) };
}

sub slurp
{
	my ($file, $bytes) = @_;

	open my $in, '<:raw', $file or die "could not open $file: $!";
	read $in, my $content, $bytes or die "could not read $file: $!";
	return $content;
}

# Changes a file from its beginning on.
sub overwrite
{
	my ($file, $content) = @_;

	open my $out, '+<:raw', $file or die "could not open $file: $!";
	print $out $content;
	close $out or die "could not write $file: $!";
	return;
}

# How many bytes of pg_control its checksum (CRC-32C) is of: it follows them.  Given a number, the checksum of so many.
sub checksum
{
	my ($control, $length) = @_;
	my $crc = 0xFFFFFFFF;

	foreach my $at (0 .. ($length // length($control) - 4) - 1)
	{
		return $at if !defined $length && $at > 8 && ($crc ^ 0xFFFFFFFF) == unpack 'L', substr $control, $at, 4;
		$crc = $crc >> 8 ^ $crc_table[($crc ^ ord substr $control, $at, 1) & 0xFF];
	}
	return defined $length ? $crc ^ 0xFFFFFFFF : die 'pg_control has no checksum that is right';
}

# As initdb makes it, for a server of its own.  It stands in pg_control, and in the first page of the WAL.
sub give_identifier
{
	my ($data) = @_;
	my ($seconds, $microseconds) = gettimeofday();
	my $identifier = pack 'Q', $seconds << 32 | $microseconds << 12 | $$ & 0xFFF;
	my $control = slurp("$data/global/pg_control", 8192);
	my $length = checksum($control);
	my ($wal) = glob "$data/pg_wal/0*";
	my $page = slurp($wal, 32);

	die "the first page of $wal is of another server" if substr($page, 24, 8) ne substr($control, 0, 8);
	substr $page, 24, 8, $identifier;
	substr $control, 0, 8, $identifier;
	substr $control, $length, 4, pack 'L', checksum($control, $length);
	overwrite("$data/global/pg_control", $control);
	overwrite($wal, $page);
	return;
}

sub copy_template
{
	my @command = @_;
	my ($place) = grep { $command[ $_ - 1 ] =~ /\A(-D|--pgdata)\z/ } 1 .. $#command;
	my $data = $command[$place];

	# Servers of two versions have two: each finds its own initdb.
	my ($bin) = grep { -x "$_/initdb" } split /:/, $ENV{PATH};
	$command[$place] = $bin // die "no initdb in $ENV{PATH}";
	my $template = "$PostgreSQL::Test::Utils::tmp_check/template" . join('', @command) =~ s/\W+/_/gr;

	# The first who needs it makes it.
	open my $lock, '>', "$template.lock" or die "could not open $template.lock: $!";
	flock $lock, LOCK_EX or die "could not lock $template.lock: $!";
	if (!-d $template)
	{
		$command[$place] = "$template.new";
		$run->(@command);
		rename "$template.new", $template or die "could not rename $template.new: $!";
	}
	close $lock;

	$run->('cp', '-RPp', $template, $data);
	give_identifier($data);
	return;
}

1;
